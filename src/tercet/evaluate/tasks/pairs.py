"""Tasks on pairs of texts: how alike they are, and whether they match."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.calibration import Calibration
from tercet.errors import InputError
from tercet.evaluate.decisions import (
    accuracy_at_best,
    calibration_error,
    f1_at_best,
    precision_over_recall,
)
from tercet.evaluate.metrics import pearson, rank_shares, spearman
from tercet.evaluate.results import Case, Result, by_group, check_scores
from tercet.evaluate.significance import Columns, Measure
from tercet.models.bi import BiEncoder
from tercet.models.scorer import Scorer
from tercet.records import Context, Floats, Lesson, as_text


@dataclass(frozen=True)
class Pairs:
    """Two texts each, and a number."""

    contexts: list[Context]
    candidates: list[str]
    targets: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, lessons: Sequence[Lesson], groups: NDArray[np.int64] | None = None) -> "Pairs":
        """The pairs of lessons."""
        return cls(
            [lesson.context for lesson in lessons],
            [lesson.candidates[0] for lesson in lessons],
            np.array([lesson.targets[0] for lesson in lessons]),
            groups,
        )

    def texts(self) -> list[str]:
        """All of them."""
        return [*map(as_text, self.contexts), *self.candidates]

    def result(self, task: str, model: str, measures: dict[str, Measure], columns: Columns) -> Result:
        """What came out, with the pairs whose rank is farthest from where it should be."""
        check_scores(columns["score"], model)
        off = np.abs(rank_shares(columns["score"]) - rank_shares(self.targets))
        if self.groups is not None:
            measures = {name: by_group(measure) for name, measure in measures.items()}
            columns = {**columns, "group": self.groups}
        return Result(task, model, measures, columns, off, lambda place: self._case(columns, place))

    def _case(self, columns: Columns, place: int) -> Case:
        return Case(
            self.contexts[place],
            wanted=f"{self.targets[place]:g}",
            got=f"{columns['score'][place]:.4f} for {self.candidates[place]}",
        )


@dataclass(frozen=True)
class SimilarityTask:
    """Whether scores rise with how alike people found two texts."""

    name: str
    pairs: Pairs

    def __post_init__(self) -> None:
        if len(np.unique(self.pairs.targets)) < 2:
            raise InputError(f"{self.name}: all pairs have the same score: nothing correlates with that")

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return self.pairs.texts()

    def check(self, scorer: Scorer) -> None:
        """Every scorer can do it."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """Spearman's and Pearson's correlation; of a bi-encoder by four ways to compare its vectors."""
        pairs = self.pairs
        if not isinstance(scorer, BiEncoder):
            return self.of_scores(scorer.score_pairs(pairs.contexts, pairs.candidates), model)
        left, right = scorer.encode_contexts(pairs.contexts), scorer.encode_candidates(pairs.candidates)
        others = similarities(left.vectors[:, 0], right)
        if scorer.by_angle:
            others.pop("cosine")  # its own
        return self.of_scores(scorer.match_pairs(left, right), model, others)

    def of_scores(
        self, scores: Floats, model: str, others: Mapping[str, NDArray[np.float64]] | None = None
    ) -> Result:
        """The same of scores ``[N]``, and of scores by other ways to compare."""
        columns = {"target": self.pairs.targets, "score": scores.astype(np.float64), **(others or {})}
        measures = {"spearman": _correlation(spearman, "score"), "pearson": _correlation(pearson, "score")}
        for name in others or {}:
            measures[f"{name} ρ"] = _correlation(spearman, name)
        return self.pairs.result(self.name, model, measures, columns)


@dataclass(frozen=True)
class MatchTask:
    """Whether matches score higher than other pairs."""

    name: str
    pairs: Pairs

    def __post_init__(self) -> None:
        if set(np.unique(self.pairs.targets)) != {0.0, 1.0}:
            raise InputError(
                f"{self.name}: labels must be 0 (no match) and 1 (match), and both must occur: name the "
                "column and the labels"
            )

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return self.pairs.texts()

    def check(self, scorer: Scorer) -> None:
        """Every scorer can do it."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """Average precision, and at the best threshold accuracy and F1; of a calibrated scorer its error."""
        scores = scorer.score_pairs(self.pairs.contexts, self.pairs.candidates)
        return self.of_scores(scores, model, scorer.calibration)

    def of_scores(self, scores: Floats, model: str, calibration: Calibration | None = None) -> Result:
        """The same of scores ``[N]``."""
        columns = {"score": scores.astype(np.float64), "target": self.pairs.targets}
        measures: dict[str, Measure] = {
            "average precision": lambda at: precision_over_recall(at["score"], at["target"]),
            "F1": lambda at: f1_at_best(at["score"], at["target"]),
            "accuracy": lambda at: accuracy_at_best(at["score"], at["target"]),
        }
        if calibration is not None:
            columns["probability"] = calibration.probabilities(scores).astype(np.float64)
            measures["calibration error"] = lambda at: calibration_error(at["probability"], at["target"])
        found = self.pairs.result(self.name, model, measures, columns)
        matches = self.pairs.targets > 0
        return replace(found, right=scores[matches], wrong=scores[~matches])


def similarities(left: Floats, right: Floats) -> dict[str, NDArray[np.float64]]:
    """``[N]`` each: rows compared by cosine, by dot product, and by distances with their sign turned."""
    u, v = left.astype(np.float64), right.astype(np.float64)
    dot = np.einsum("nd,nd->n", u, v)
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    return {
        "cosine": dot / np.maximum(lengths, 1e-12),
        "dot": dot,
        "euclidean": -np.linalg.norm(u - v, axis=1),
        "manhattan": -np.abs(u - v).sum(axis=1),
    }


def _correlation(of: Callable[[ArrayLike, ArrayLike], float], column: str) -> Measure:
    return lambda columns: of(columns[column], columns["target"])
