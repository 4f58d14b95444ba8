"""Tasks on candidates that come with their context: choose the right one, put the near before the far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.errors import InputError
from tercet.evaluate.metrics import places
from tercet.evaluate.results import Case, Result, mean_of
from tercet.models.cross import CrossEncoder
from tercet.models.scorer import Scorer
from tercet.records import Counts, Floats, Lesson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tercet.evaluate.significance import Measure

DEPTHS = (1, 2, 5, 10)
MOST_FOR_A_CROSS_ENCODER = 100
"""Candidates for one context; more take it hours where the others take seconds."""


@dataclass(frozen=True)
class ChoiceTask:
    """The right one among given candidates (R@k/C), or among the answers of all contexts."""

    name: str
    lessons: Sequence[Lesson]

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return _candidates(self.lessons)

    def run(self, scorer: Scorer, model: str) -> Result:
        """R@k for k below the number of candidates, and MRR; equal scores count against the model."""
        scores = self._scores(scorer)
        answers = self._answers()
        found = places(scores, answers)
        columns: dict[str, NDArray[Any]] = {"place": found, "reciprocal": 1 / found}
        counts = np.count_nonzero(scores > -np.inf, axis=1)
        measures: dict[str, Measure] = {}
        for depth in DEPTHS:
            if depth < counts.max():
                columns[f"at {depth}"] = found <= depth
                measures[f"R@{depth}/{counts.max()}"] = mean_of(f"at {depth}")
        measures["MRR"] = mean_of("reciprocal")
        right = scores[np.arange(len(scores)), answers]
        is_wrong = scores > -np.inf
        is_wrong[np.arange(len(scores)), answers] = False
        return Result(
            self.name,
            model,
            measures,
            columns,
            found.astype(np.float64),
            lambda place: self._case(scores, place),
            right=right,
            wrong=scores[is_wrong],
        )

    def _scores(self, scorer: Scorer) -> Floats:
        """``[N, C]``; where a row has fewer candidates, the rest is −∞."""
        contexts = [lesson.context for lesson in self.lessons]
        if self._among_all:
            if isinstance(scorer, CrossEncoder) and len(self._texts()) > MOST_FOR_A_CROSS_ENCODER:
                raise InputError(
                    f"{self.name}: a cross-encoder would read {len(contexts) * len(self._texts()):,} pairs; "
                    "give each context its candidates, or measure retrieval with --rerank"
                )
            return scorer.score_many(contexts, self._texts())
        counts = [len(lesson.candidates) for lesson in self.lessons]
        flat = scorer.score_pairs(
            [lesson.context for lesson in self.lessons for _ in lesson.candidates],
            [text for lesson in self.lessons for text in lesson.candidates],
        )
        rows = np.full((len(counts), max(counts)), -np.inf, dtype=np.float32)
        rows[np.arange(max(counts)) < np.array(counts)[:, None]] = flat
        return rows

    @property
    def _among_all(self) -> bool:
        return all(len(lesson.candidates) == 1 for lesson in self.lessons)

    def _texts(self) -> list[str]:
        return list(dict.fromkeys(lesson.candidates[0] for lesson in self.lessons))

    def _answers(self) -> Counts:
        if not self._among_all:
            return np.zeros(len(self.lessons), dtype=np.int64)
        place = {text: number for number, text in enumerate(self._texts())}
        return np.array([place[lesson.candidates[0]] for lesson in self.lessons], dtype=np.int64)

    def _case(self, scores: Floats, row: int) -> Case:
        lesson = self.lessons[row]
        texts = self._texts() if self._among_all else lesson.candidates
        chosen = int(np.argmax(scores[row]))
        right = int(self._answers()[row])
        return Case(
            lesson.context,
            wanted=f"{scores[row, right]:.4f} {lesson.candidates[0]}",
            got=f"{scores[row, chosen]:.4f} {texts[chosen]}",
        )


@dataclass(frozen=True)
class TripletTask:
    """Whether the near text scores higher than the far one."""

    name: str
    lessons: Sequence[Lesson]

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return _candidates(self.lessons)

    def run(self, scorer: Scorer, model: str) -> Result:
        """Accuracy; equal scores are wrong."""
        contexts = [lesson.context for lesson in self.lessons]
        near, far = (
            scorer.score_pairs(contexts, [lesson.candidates[side] for lesson in self.lessons])
            for side in (0, 1)
        )
        gaps: NDArray[np.float64] = near.astype(np.float64) - far
        return Result(
            self.name,
            model,
            {"accuracy": mean_of("right")},
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


def _candidates(lessons: Sequence[Lesson]) -> list[str]:
    return list(dict.fromkeys(text for lesson in lessons for text in lesson.candidates))
