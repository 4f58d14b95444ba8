"""Examples with a teacher's scores as targets, for distillation."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

import numpy as np

from tercet.errors import InputError
from tercet.formats.load import load
from tercet.records import Context, Example, Floats, as_text
from tercet.settings.recipe import Recipe
from tercet.training.lexical_overlap import LexicalOverlap
from tercet.training.negatives import check_enough, draw_negatives
from tercet.training.objectives import OBJECTIVES
from tercet.training.splits import DataSplits
from tercet.training.targets import Targets

ScoreFunction: TypeAlias = Callable[[Sequence[Context], Sequence[str]], Floats]
"""The scores of contexts and the candidates at their positions."""

MAX_COSINE = 1.001
"""The largest absolute cosine, with rounding."""

UNLIMITED = (-np.inf, np.inf)


def with_teacher_scores(splits: DataSplits, recipe: Recipe, *, device: str | None = None) -> DataSplits:
    """Training and dev data with the mean scores of the recipe's teachers; test data is unchanged.

    Random negatives are drawn here, once, because the teachers score them too.
    """
    teachers = [load(teacher, device=device, runtime="torch") for teacher in recipe.teachers]
    score: ScoreFunction = partial(mean_scores, [teacher.score_pairs for teacher in teachers])
    count, seed = recipe.batches.negatives, recipe.training.seed
    train, dev = (_with_negatives(part, count, seed=seed) for part in (splits.train, splits.dev))
    limits = UNLIMITED
    objective = recipe.objective
    if OBJECTIVES[objective.kind].targets is Targets.SCORES:  # learns from single pairs
        train, dev = _as_pairs(train), _as_pairs(dev)
        limits = (objective.min_score, objective.max_score)
        score = partial(_within_reach, score, limits)
    if recipe.teacher_lexical_weight:
        overlap = LexicalOverlap(
            chain.from_iterable((as_text(example.context), *example.candidates) for example in train)
        )
        of_pairs = overlap.of_both if recipe.train.both_directions else overlap.of_contexts
        score = partial(_with_overlap, score, of_pairs, recipe.teacher_lexical_weight)
    return replace(splits, train=with_scores(score, train, limits), dev=with_scores(score, dev, limits))


def with_scores(
    score: ScoreFunction, examples: Sequence[Example], limits: tuple[float, float] = UNLIMITED
) -> list[Example]:
    """The examples with the scores of their candidates as targets, clipped to the limits."""
    scores = score(
        [example.context for example in examples for _ in example.candidates],
        [text for example in examples for text in example.candidates],
    )
    ends = np.cumsum([len(example.candidates) for example in examples])[:-1]
    rows = np.split(np.clip(scores, *limits), ends)
    return [
        replace(example, targets=tuple(map(float, row))) for example, row in zip(examples, rows, strict=True)
    ]


def with_random_negatives(examples: Sequence[Example], count: int, *, seed: int) -> Sequence[Example]:
    """The examples with random answers of others added to their candidates."""
    answers = list(dict.fromkeys(example.candidates[0] for example in examples))
    check_enough(answers, count)
    rng = random.Random(seed)
    return [
        replace(
            example,
            candidates=(*example.candidates, *draw_negatives(answers, example.candidates, count, rng)),
        )
        for example in examples
    ]


def _with_negatives(examples: Sequence[Example], count: int, *, seed: int) -> Sequence[Example]:
    """With random negatives, unless the examples have negatives already."""
    alone = all(len(example.candidates) == 1 for example in examples)
    return with_random_negatives(examples, count, seed=seed) if alone and count else examples


def mean_scores(
    scorers: Sequence[ScoreFunction], contexts: Sequence[Context], candidates: Sequence[str]
) -> Floats:
    """The mean scores of several teachers; those of more than one must be from -1 to 1."""
    scores = [score(contexts, candidates) for score in scorers]
    if len(scores) > 1:
        for each in scores:
            _check_range(each, "several teachers need scores from -1 to 1")
    mean: Floats = np.mean(scores, axis=0)
    return mean


def _with_overlap(
    score: ScoreFunction,
    overlap: ScoreFunction,
    weight: float,
    contexts: Sequence[Context],
    candidates: Sequence[str],
) -> Floats:
    scores, shares = score(contexts, candidates), overlap(contexts, candidates)
    _check_range(scores, "teacher_lexical_weight needs scores from -1 to 1")
    return np.average([scores, shares], axis=0, weights=[1, weight]).astype(np.float32)


def _within_reach(
    score: ScoreFunction, limits: tuple[float, float], contexts: Sequence[Context], candidates: Sequence[str]
) -> Floats:
    """The scores, if the range of the objective is theirs; negative cosines may be clipped."""
    scores = score(contexts, candidates)
    low, high = float(scores.min(initial=limits[0])), float(scores.max(initial=limits[1]))
    rounding = MAX_COSINE - 1
    if high > limits[1] + rounding or low < limits[0] - (limits[1] - limits[0]) - rounding:
        raise InputError(
            f"the teacher's scores range from {low:.3g} to {high:.3g}, and the objective's from "
            f"{limits[0]:g} to {limits[1]:g}: set min_score and max_score in [objective] to the teacher's "
            "range, or use a teacher with a cosine similarity or a sigmoid activation"
        )
    return scores


def _check_range(scores: Floats, requirement: str) -> None:
    largest = np.abs(scores).max(initial=0)
    if largest > MAX_COSINE:
        raise InputError(
            f"{requirement}, got {largest:.3g}: use teachers with a cosine similarity or a sigmoid activation"
        )


def _as_pairs(examples: Sequence[Example]) -> list[Example]:
    return [replace(example, candidates=(text,)) for example in examples for text in example.candidates]
