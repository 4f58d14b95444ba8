"""Lessons whose targets are another model's scores: what a student is to learn (distillation)."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

import numpy as np

from tercet.errors import InputError
from tercet.models.load import load
from tercet.records import Context, Floats, Lesson, as_text
from tercet.training.checks import SCORES
from tercet.training.lesson_sets import LessonSets
from tercet.training.settings import ObjectiveConfig
from tercet.training.word_shares import WordShares

Ask: TypeAlias = Callable[[Sequence[Context], Sequence[str]], Floats]
"""The scores of contexts, each with the candidate at its place."""

FURTHEST = 1.001
"""How far from 0 a cosine may be, rounded."""


def taught(
    sets: LessonSets,
    teachers: Sequence[str],
    objective: ObjectiveConfig,
    *,
    words: float = 0.0,
    both_ways: bool = False,
    negatives: int = 0,
    seed: int = 0,
    device: str | None = None,
) -> LessonSets:
    """The sets to learn from and to look at, with the teachers' mean scores; the test set keeps its own.

    Args:
        words: how much the share of the context's words that a candidate has counts beside the teacher's
            score; the target is the weighted mean of both.
        both_ways: that share is the mean of both ways, since neither text is the context of the other.
        negatives: answers of other lessons, drawn once, that the teacher scores for each lesson too.
    """
    ask: Ask = partial(_mean, [load(teacher, device=device).score_pairs for teacher in teachers])
    train, dev = (_accompanied(part, negatives, seed=seed) for part in (sets.train, sets.dev))
    limits = (-np.inf, np.inf)
    if objective.kind in SCORES:  # learnt pair by pair
        train, dev = _pairs(train), _pairs(dev)
        limits = (objective.lowest, objective.highest)
    if words:
        shares = WordShares(chain.from_iterable((as_text(each.context), *each.candidates) for each in train))
        ask = partial(_with_words, ask, shares.of_either if both_ways else shares.of_pairs, words)
    return replace(sets, train=with_scores(ask, train, limits), dev=with_scores(ask, dev, limits))


def _mean(asked: Sequence[Ask], contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
    scores = [ask(contexts, candidates) for ask in asked]
    if len(scores) > 1:
        for each in scores:
            _check_range(each, "several teachers are of one mind about scores from -1 to 1")
    mean: Floats = np.mean(scores, axis=0)
    return mean


def _with_words(
    ask: Ask, share: Ask, words: float, contexts: Sequence[Context], candidates: Sequence[str]
) -> Floats:
    scores, common = ask(contexts, candidates), share(contexts, candidates)
    _check_range(scores, "teacher_words counts beside scores from -1 to 1")
    return np.average([scores, common], axis=0, weights=[1, words]).astype(np.float32)


def _check_range(scores: Floats, reason: str) -> None:
    furthest = np.abs(scores).max(initial=0)
    if furthest > FURTHEST:
        raise InputError(
            f"{reason}, and a teacher's reach {furthest:.3g}: take teachers by cosine or with a sigmoid"
        )


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
    ask: Ask, lessons: Sequence[Lesson], limits: tuple[float, float] = (-np.inf, np.inf)
) -> list[Lesson]:
    """Lessons with what ``ask`` says of each candidate as targets, none beyond the limits."""
    scores = ask(
        [lesson.context for lesson in lessons for _ in lesson.candidates],
        [text for lesson in lessons for text in lesson.candidates],
    )
    ends = np.cumsum([len(lesson.candidates) for lesson in lessons])[:-1]
    rows = np.split(np.clip(scores, *limits), ends)
    return [
        replace(lesson, targets=tuple(map(float, row))) for lesson, row in zip(lessons, rows, strict=True)
    ]


def _pairs(lessons: Sequence[Lesson]) -> list[Lesson]:
    return [replace(lesson, candidates=(text,)) for lesson in lessons for text in lesson.candidates]
