"""Tasks on candidates that come with their context: choose the right one, put the near before the far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tercet.errors import DataError, InputError
from tercet.evaluate.metrics import places
from tercet.evaluate.results import Case, Result, check_scores
from tercet.evaluate.significance import MeanOf
from tercet.evaluate.tasks.scoring import given_scores, score_blocks
from tercet.models.cross import CrossEncoder
from tercet.models.scorer import Scorer
from tercet.records import Counts, Floats, Lesson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tercet.evaluate.significance import Measure

DEPTHS = (1, 2, 5, 10)
MOST_FOR_A_CROSS_ENCODER = 100_000
"""Pairs of every context and every answer; more take it hours where the others take seconds."""
WRONG_SHOWN = 100_000
"""Scores of wrong candidates that are kept for a picture."""


@dataclass(frozen=True)
class ChoiceTask:
    """The right one among given candidates (R@k/C), or among the answers of all contexts."""

    name: str
    lessons: Sequence[Lesson]
    among_all: bool = False

    def __post_init__(self) -> None:
        fewest = 1 if self.among_all else 2
        for lesson in self.lessons:
            if len(lesson.candidates) < fewest:
                raise DataError(f"{lesson.where}: one candidate leaves no choice: give at least two")
        if self.among_all and len(self._texts) < 2:
            raise InputError(f"{self.name}: all rows have the same answer: there is no choice")

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return _candidates(self.lessons)

    def check(self, scorer: Scorer) -> None:
        """A cross-encoder needs candidates that were chosen before."""
        pairs = len(self.lessons) * len(self._texts)
        if self.among_all and isinstance(scorer, CrossEncoder) and pairs > MOST_FOR_A_CROSS_ENCODER:
            raise InputError(
                f"{self.name}: a cross-encoder would read {pairs:,} pairs; give each context its candidates, "
                "or measure retrieval with --rerank"
            )

    def run(self, scorer: Scorer, model: str) -> Result:
        """R@k for k below the number of candidates, and MRR; equal scores count against the model."""
        self.check(scorer)
        parts = [_Read.of(scores, answers, model) for scores, answers in self._blocks(scorer)]
        read = _Read(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        most = len(self._texts) if self.among_all else max(len(each.candidates) for each in self.lessons)
        columns: dict[str, NDArray[Any]] = {"place": read.places, "MRR": 1 / read.places}
        measures: dict[str, Measure] = {}
        for depth in DEPTHS:
            if depth < most:
                name = f"R@{depth}/{most}"
                columns[name] = read.places <= depth
                measures[name] = MeanOf(name)
        measures["MRR"] = MeanOf("MRR")
        return Result(
            self.name,
            model,
            measures,
            columns,
            read.places.astype(np.float64),
            lambda place: self._case(read, place),
            right=read.right,
            wrong=read.wrong[:: max(1, len(read.wrong) // WRONG_SHOWN)],
        )

    def _blocks(self, scorer: Scorer) -> Iterator[tuple[Floats, Counts]]:
        """Scores ``[b, C]`` and the places of the right candidates ``[b]``."""
        if not self.among_all:
            yield given_scores(scorer, self.lessons), np.zeros(len(self.lessons), dtype=np.int64)
            return
        start = 0
        for scores in score_blocks(scorer, [lesson.context for lesson in self.lessons], list(self._texts)):
            block = self.lessons[start : start + len(scores)]
            start += len(scores)
            yield scores, np.array([self._texts[lesson.candidates[0]] for lesson in block], dtype=np.int64)

    @cached_property
    def _texts(self) -> dict[str, int]:
        """The different answers, and their places."""
        return {
            text: place
            for place, text in enumerate(dict.fromkeys(each.candidates[0] for each in self.lessons))
        }

    def _case(self, read: "_Read", row: int) -> Case:
        lesson = self.lessons[row]
        texts = list(self._texts) if self.among_all else lesson.candidates
        return Case(
            lesson.context,
            wanted=f"{read.right[row]:.4f} {lesson.candidates[0]}",
            got=f"{read.best[row]:.4f} {texts[int(read.chosen[row])]}",
        )


@dataclass(frozen=True)
class TripletTask:
    """Whether the near text scores higher than the far one."""

    name: str
    lessons: Sequence[Lesson]

    def __post_init__(self) -> None:
        for lesson in self.lessons:
            if len(lesson.candidates) != 2:
                raise DataError(f"{lesson.where}: a triplet has one near and one far text")

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return _candidates(self.lessons)

    def check(self, scorer: Scorer) -> None:
        """Every scorer can do it."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """Accuracy; equal scores are wrong."""
        contexts = [lesson.context for lesson in self.lessons]
        near, far = (
            scorer.score_pairs(contexts, [lesson.candidates[side] for lesson in self.lessons])
            for side in (0, 1)
        )
        gaps: NDArray[np.float64] = near.astype(np.float64) - far
        check_scores(gaps, model)
        return Result(
            self.name,
            model,
            {"accuracy": MeanOf("right")},
            {"right": gaps > 0},
            -gaps,
            lambda place: Case(
                contexts[place],
                wanted=f"{near[place]:.4f} {self.lessons[place].candidates[0]}",
                got=f"{far[place]:.4f} {self.lessons[place].candidates[1]}",
            ),
            right=near,
            wrong=far,
        )


class _Read(NamedTuple):
    """Of each row: the right one's place and score, which was best and its score; and all wrong scores."""

    places: Counts
    right: Floats
    chosen: Counts
    best: Floats
    wrong: Floats

    @classmethod
    def of(cls, scores: Floats, answers: Counts, model: str) -> "_Read":
        """What is kept of scores ``[b, C]``; −∞ is no candidate."""
        rows = np.arange(len(scores))
        there = scores > -np.inf
        check_scores(scores[there | np.isnan(scores)], model)
        chosen = scores.argmax(axis=1)
        right = scores[rows, answers]
        found = places(scores, answers)
        there[rows, answers] = False
        return cls(found, right, chosen, scores[rows, chosen], scores[there])


def _candidates(lessons: Sequence[Lesson]) -> list[str]:
    return list(dict.fromkeys(text for lesson in lessons for text in lesson.candidates))
