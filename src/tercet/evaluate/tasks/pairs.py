"""Tasks on pairs of texts: similarity scores and binary classification."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import InputError
from tercet.evaluate.binary_metrics import (
    accuracy_at_best_threshold,
    binary_average_precision,
    expected_calibration_error,
    f1_at_best_threshold,
)
from tercet.evaluate.metrics import normalized_ranks, pearson, spearman
from tercet.evaluate.results import Case, Result, check_finite, mean_over_groups
from tercet.evaluate.significance import Columns, Metric
from tercet.records import Context, Example, Floats, as_text
from tercet.scorers.bi_scorer import BiScorer
from tercet.scorers.calibration import Calibration
from tercet.scorers.scorer import Scorer


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts with a score or a label each; metrics are averaged over the groups, if there are any."""

    contexts: list[Context]
    candidates: list[str]
    targets: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, examples: Sequence[Example], groups: NDArray[np.int64] | None = None) -> "Pairs":
        """The pairs in examples of one candidate."""
        return cls(
            [example.context for example in examples],
            [example.candidates[0] for example in examples],
            np.array([example.targets[0] for example in examples]),
            groups,
        )

    def texts(self) -> list[str]:
        """All contexts and candidates."""
        return [*map(as_text, self.contexts), *self.candidates]

    def result(self, task: str, model: str, metrics: dict[str, Metric], columns: Columns) -> Result:
        """The result; the loss of a pair is the distance of its rank by score and its rank by target."""
        check_finite(columns["score"], model)
        losses = np.abs(normalized_ranks(columns["score"]) - normalized_ranks(self.targets))
        if self.groups is not None:
            metrics = {name: mean_over_groups(metric) for name, metric in metrics.items()}
            columns = {**columns, "group": self.groups}
        return Result(task, model, metrics, columns, losses, lambda position: self._case(columns, position))

    def _case(self, columns: Columns, position: int) -> Case:
        return Case(
            self.contexts[position],
            wanted=f"{self.targets[position]:g}",
            got=f"{columns['score'][position]:.4f} for {self.candidates[position]}",
        )


@dataclass(frozen=True)
class SimilarityTask:
    """The correlation of scores with the similarity that people assigned."""

    name: str
    pairs: Pairs

    def __post_init__(self) -> None:
        if len(np.unique(self.pairs.targets)) < 2:
            raise InputError(
                f"{self.name}: a correlation needs different scores, and all pairs have the same"
            )

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return self.pairs.texts()

    def check(self, scorer: Scorer) -> None:
        """Every scorer can do this task."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """Spearman's and Pearson's correlation; for a bi-encoder also by other similarity functions."""
        pairs = self.pairs
        if not isinstance(scorer, BiScorer):
            return self.of_scores(scorer.score_pairs(pairs.contexts, pairs.candidates), model)
        left, right = scorer.encode_contexts(pairs.contexts), scorer.encode_candidates(pairs.candidates)
        others = similarities(left.vectors[:, 0], right)
        if scorer.uses_cosine:
            others.pop("cosine")  # the scorer's own
        return self.of_scores(scorer.match(left, right[:, None])[:, 0], model, others)

    def of_scores(
        self, scores: Floats, model: str, others: Mapping[str, NDArray[np.float64]] | None = None
    ) -> Result:
        """The result of scores ``[N]``.

        Args:
            others: scores ``[N]`` by other similarity functions.
        """
        columns = {"target": self.pairs.targets, "score": scores.astype(np.float64), **(others or {})}
        metrics = {"spearman": _correlation(spearman, "score"), "pearson": _correlation(pearson, "score")}
        for name in others or {}:
            metrics[f"{name} ρ"] = _correlation(spearman, name)
        return self.pairs.result(self.name, model, metrics, columns)


@dataclass(frozen=True)
class MatchTask:
    """Binary classification of pairs into matches and non-matches by their score."""

    name: str
    pairs: Pairs

    def __post_init__(self) -> None:
        if set(np.unique(self.pairs.targets)) != {0.0, 1.0}:
            raise InputError(
                f"{self.name}: labels must be 0 (no match) and 1 (match), and both must occur: set the score "
                "column and the labels"
            )

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return self.pairs.texts()

    def check(self, scorer: Scorer) -> None:
        """Every scorer can do this task."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """Average precision, F1 and accuracy at the best threshold; if calibrated, the calibration error."""
        scores = scorer.score_pairs(self.pairs.contexts, self.pairs.candidates)
        return self.of_scores(scores, model, scorer.calibration)

    def of_scores(self, scores: Floats, model: str, calibration: Calibration | None = None) -> Result:
        """The result of scores ``[N]``."""
        columns = {"score": scores.astype(np.float64), "target": self.pairs.targets}
        metrics: dict[str, Metric] = {
            "average precision": lambda at: binary_average_precision(at["score"], at["target"]),
            "F1": lambda at: f1_at_best_threshold(at["score"], at["target"]),
            "accuracy": lambda at: accuracy_at_best_threshold(at["score"], at["target"]),
        }
        if calibration is not None:
            columns["probability"] = calibration.probabilities(scores).astype(np.float64)
            metrics["calibration error"] = lambda at: expected_calibration_error(
                at["probability"], at["target"]
            )
        result = self.pairs.result(self.name, model, metrics, columns)
        matches = self.pairs.targets > 0
        return replace(result, positive_scores=scores[matches], negative_scores=scores[~matches])


def similarities(left: Floats, right: Floats) -> dict[str, NDArray[np.float64]]:
    """``[N]`` per similarity function: cosine, dot product, and negative distances of rows."""
    u, v = left.astype(np.float64), right.astype(np.float64)
    dot = np.einsum("nd,nd->n", u, v)
    norms = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    return {
        "cosine": dot / np.maximum(norms, 1e-12),
        "dot": dot,
        "euclidean": -np.linalg.norm(u - v, axis=1),
        "manhattan": -np.abs(u - v).sum(axis=1),
    }


def _correlation(function: Callable[[ArrayLike, ArrayLike], float], column: str) -> Metric:
    return lambda columns: function(columns[column], columns["target"])
