"""Lessons whose targets are another model's scores: what a student is to learn (distillation)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tercet.models.load import AnyScorer, load
from tercet.records import Lesson
from tercet.training.checks import SCORES
from tercet.training.lesson_sets import LessonSets
from tercet.training.settings import ObjectiveConfig


def taught(sets: LessonSets, teacher: str, objective: ObjectiveConfig, *, device: str | None) -> LessonSets:
    """The sets to learn from and to look at, with the teacher's scores; the test set keeps its own."""
    scorer = load(teacher, device=device)
    if objective.kind in SCORES:  # learnt pair by pair
        ask = partial(with_scores, scorer, lowest=objective.lowest, highest=objective.highest)
        return replace(sets, train=ask(_pairs(sets.train)), dev=ask(_pairs(sets.dev)))
    return replace(sets, train=with_scores(scorer, sets.train), dev=with_scores(scorer, sets.dev))


def with_scores(
    teacher: AnyScorer, lessons: Sequence[Lesson], *, lowest: float = -np.inf, highest: float = np.inf
) -> list[Lesson]:
    """Lessons with the teacher's score of each candidate as targets, none beyond the limits."""
    scores = teacher.score_pairs(
        [lesson.context for lesson in lessons for _ in lesson.candidates],
        [text for lesson in lessons for text in lesson.candidates],
    )
    ends = np.cumsum([len(lesson.candidates) for lesson in lessons])[:-1]
    rows = np.split(np.clip(scores, lowest, highest), ends)
    return [
        replace(lesson, targets=tuple(map(float, row))) for lesson, row in zip(lessons, rows, strict=True)
    ]


def _pairs(lessons: Sequence[Lesson]) -> list[Lesson]:
    return [replace(lesson, candidates=(text,)) for lesson in lessons for text in lesson.candidates]
