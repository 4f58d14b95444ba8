"""Lessons whose targets are another model's scores: what a student is to learn (distillation)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tercet.errors import InputError
from tercet.models.load import AnyScorer, load
from tercet.records import Lesson
from tercet.training.checks import SCORES
from tercet.training.lesson_sets import LessonSets
from tercet.training.settings import ObjectiveConfig


def taught(
    sets: LessonSets,
    teacher: str,
    objective: ObjectiveConfig,
    *,
    negatives: int = 0,
    seed: int = 0,
    device: str | None = None,
) -> LessonSets:
    """The sets to learn from and to look at, with the teacher's scores; the test set keeps its own.

    Args:
        negatives: answers of other lessons, drawn once, that the teacher scores for each lesson too.
    """
    scorer = load(teacher, device=device)
    train, dev = (_accompanied(part, negatives, seed=seed) for part in (sets.train, sets.dev))
    if objective.kind in SCORES:  # learnt pair by pair
        ask = partial(with_scores, scorer, lowest=objective.lowest, highest=objective.highest)
        return replace(sets, train=ask(_pairs(train)), dev=ask(_pairs(dev)))
    return replace(sets, train=with_scores(scorer, train), dev=with_scores(scorer, dev))


def _accompanied(lessons: Sequence[Lesson], count: int, *, seed: int) -> Sequence[Lesson]:
    """With others' answers, unless lessons have wrong candidates already."""
    alone = all(len(lesson.candidates) == 1 for lesson in lessons)
    return with_others(lessons, count, seed=seed) if alone and count else lessons


def with_others(lessons: Sequence[Lesson], count: int, *, seed: int) -> Sequence[Lesson]:
    """Lessons with answers of others beside their own candidates."""
    answers = list(dict.fromkeys(lesson.candidates[0] for lesson in lessons))
    if count and len(answers) <= count:
        raise InputError(
            f"{count} negatives cannot be drawn from {len(answers)} different answers: ask for fewer"
        )
    chance = random.Random(seed)
    return [
        replace(lesson, candidates=lesson.candidates + _others(lesson, answers, count, chance))
        for lesson in lessons
    ]


def _others(lesson: Lesson, answers: list[str], count: int, chance: random.Random) -> tuple[str, ...]:
    drawn = chance.sample(answers, count + 1)
    return tuple(text for text in drawn if text not in lesson.candidates)[:count]


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
