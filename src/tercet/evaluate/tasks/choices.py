"""Tasks on candidates that belong to a context: find the right one, rank the positive before the negative."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tercet.errors import DataError, InputError
from tercet.evaluate.metrics import ranks
from tercet.evaluate.results import Case, Result, check_finite
from tercet.evaluate.significance import MeanOf
from tercet.evaluate.tasks.scoring import given_scores, score_blocks
from tercet.records import Example, Floats, Ints
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.scorer import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTHS = (1, 2, 5, 10)
"""The values of k in R@k."""
MAX_CROSS_ENCODER_PAIRS = 100_000
"""More pairs would take a cross-encoder hours where other scorers take seconds."""
HISTOGRAM_SCORES = 100_000
"""Scores of wrong candidates that are kept for a histogram."""


@dataclass(frozen=True)
class ChoiceTask:
    """Find the right candidate among the given ones (R@k/C), or among the answers of all contexts."""

    name: str
    examples: Sequence[Example]
    among_all: bool = False

    def __post_init__(self) -> None:
        fewest = 1 if self.among_all else 2
        for example in self.examples:
            if len(example.candidates) < fewest:
                raise DataError(f"{example.location}: a choice needs at least 2 candidates, got 1")
        if self.among_all and len(self._answers) < 2:
            raise InputError(f"{self.name}: a choice needs different answers, and all rows have the same")

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return _candidates(self.examples)

    def check(self, scorer: Scorer) -> None:
        """Raise if a cross-encoder would have to score too many pairs."""
        pairs = len(self.examples) * len(self._answers)
        if self.among_all and isinstance(scorer, CrossScorer) and pairs > MAX_CROSS_ENCODER_PAIRS:
            raise InputError(
                f"{self.name}: a cross-encoder would score {pairs:,} pairs: give each context its own "
                "candidates, or use a retrieval task with --reranker"
            )

    def run(self, scorer: Scorer, model: str) -> Result:
        """R@k for each k below the number of candidates, and MRR; ties count against the model."""
        self.check(scorer)
        parts = [_Outcome.of(scores, answers, model) for scores, answers in self._blocks(scorer)]
        outcome = _Outcome(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        most = len(self._answers) if self.among_all else max(len(each.candidates) for each in self.examples)
        recalls = {f"R@{depth}/{most}": outcome.ranks <= depth for depth in DEPTHS if depth < most}
        return Result(
            self.name,
            model,
            {name: MeanOf(name) for name in (*recalls, "MRR")},
            {"rank": outcome.ranks, "MRR": 1 / outcome.ranks, **recalls},
            outcome.ranks.astype(np.float64),
            lambda position: self._case(outcome, position),
            positive_scores=outcome.right,
            negative_scores=outcome.wrong[:: max(1, len(outcome.wrong) // HISTOGRAM_SCORES)],
        )

    def _blocks(self, scorer: Scorer) -> Iterator[tuple[Floats, Ints]]:
        """Scores ``[b, C]`` and the indices of the right candidates ``[b]``."""
        if not self.among_all:
            yield given_scores(scorer, self.examples), np.zeros(len(self.examples), dtype=np.int64)
            return
        contexts = [example.context for example in self.examples]
        start = 0
        for scores in score_blocks(scorer, contexts, list(self._answers)):
            block = self.examples[start : start + len(scores)]
            start += len(scores)
            yield (
                scores,
                np.array([self._answers[example.candidates[0]] for example in block], dtype=np.int64),
            )

    @cached_property
    def _answers(self) -> dict[str, int]:
        """The distinct answers and their indices."""
        distinct = dict.fromkeys(example.candidates[0] for example in self.examples)
        return {text: position for position, text in enumerate(distinct)}

    def _case(self, outcome: "_Outcome", row: int) -> Case:
        example = self.examples[row]
        texts = list(self._answers) if self.among_all else example.candidates
        return Case(
            example.context,
            wanted=f"{outcome.right[row]:.4f} {example.candidates[0]}",
            got=f"{outcome.best[row]:.4f} {texts[int(outcome.chosen[row])]}",
        )


@dataclass(frozen=True)
class TripletTask:
    """Whether the positive scores higher than the negative."""

    name: str
    examples: Sequence[Example]

    def __post_init__(self) -> None:
        for example in self.examples:
            if len(example.candidates) != 2:
                raise DataError(
                    f"{example.location}: a triplet needs one positive and one negative, "
                    f"got {len(example.candidates)} candidates"
                )

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return _candidates(self.examples)

    def check(self, scorer: Scorer) -> None:
        """Every scorer can do this task."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """Accuracy; equal scores are wrong."""
        contexts = [example.context for example in self.examples]
        positive, negative = (
            scorer.score_pairs(contexts, [example.candidates[side] for example in self.examples])
            for side in (0, 1)
        )
        gaps: NDArray[np.float64] = positive.astype(np.float64) - negative
        check_finite(gaps, model)
        return Result(
            self.name,
            model,
            {"accuracy": MeanOf("right")},
            {"right": gaps > 0},
            -gaps,
            lambda position: Case(
                contexts[position],
                wanted=f"{positive[position]:.4f} {self.examples[position].candidates[0]}",
                got=f"{negative[position]:.4f} {self.examples[position].candidates[1]}",
            ),
            positive_scores=positive,
            negative_scores=negative,
        )


class _Outcome(NamedTuple):
    """What is kept of the scores of contexts."""

    ranks: Ints
    """``[b]``: of the right candidate."""
    right: Floats
    """``[b]``: scores of the right candidate."""
    chosen: Ints
    """``[b]``: indices of the best candidate."""
    best: Floats
    """``[b]``: scores of the best candidate."""
    wrong: Floats
    """Scores of all wrong candidates."""

    @classmethod
    def of(cls, scores: Floats, answers: Ints, model: str) -> "_Outcome":
        """The outcome of scores ``[b, C]``; −∞ marks a missing candidate."""
        rows = np.arange(len(scores))
        present = scores > -np.inf
        check_finite(scores[present | np.isnan(scores)], model)
        chosen = scores.argmax(axis=1)
        right = scores[rows, answers]
        present[rows, answers] = False
        return cls(ranks(scores, answers), right, chosen, scores[rows, chosen], scores[present])


def _candidates(examples: Sequence[Example]) -> list[str]:
    return list(dict.fromkeys(text for example in examples for text in example.candidates))
