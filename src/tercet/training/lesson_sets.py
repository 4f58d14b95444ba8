"""What a recipe learns from and is measured with: three sets that have nothing in common."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tercet.data.overlap import without_overlap
from tercet.data.readers import all_lessons
from tercet.errors import DataError, InputError
from tercet.records import Lesson
from tercet.training.recipe import Recipe

HELD_OUT_SHARE, HELD_OUT_MOST = 0.1, 1000


@dataclass(frozen=True)
class LessonSets:
    """To learn from, to look at on the way, and to measure once at the end; the last may be empty."""

    train: Sequence[Lesson]
    dev: Sequence[Lesson]
    test: Sequence[Lesson]

    def named(self) -> dict[str, Sequence[Lesson]]:
        """Those that are there, by their names."""
        sets = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: lessons for name, lessons in sets.items() if lessons}


def read_sets(recipe: Recipe, root: Path | None, *, sealed: Sequence[Lesson] = ()) -> LessonSets:
    """The data that a recipe names, less what training data shares with the others, if that is wanted.

    Args:
        sealed: test data of a later recipe.
    """
    train = all_lessons(recipe.train, root=root)
    if sealed:
        train = without_overlap(train, sealed, name="later test", drop=recipe.train.drop_overlap)
    test = all_lessons(recipe.test, root=root) if recipe.test else []
    if test:
        train = without_overlap(train, test, name="test", drop=recipe.train.drop_overlap)
    if recipe.dev is None:
        train, dev = hold_out(train, seed=recipe.training.seed)
    else:
        dev = all_lessons(recipe.dev, root=root)
        train = without_overlap(train, dev, name="dev", drop=recipe.train.drop_overlap)
    return LessonSets(both_ways(train) if recipe.train.both_ways else train, dev, test)


def both_ways(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Each pair, and each pair with its texts exchanged."""
    turned = []
    for lesson in lessons:
        if not isinstance(lesson.context, str) or len(lesson.candidates) != 1:
            raise DataError(f"{lesson.where}: only a pair of two texts can be learnt both ways")
        turned.append(replace(lesson, context=lesson.candidates[0], candidates=(lesson.context,)))
    return [*lessons, *turned]


def hold_out(lessons: Sequence[Lesson], *, seed: int) -> tuple[list[Lesson], list[Lesson]]:
    """Lessons to learn from, and a tenth (about 1,000 at most) to look at; those of a group stay together.

    A group that is more than half of all lessons is learnt from.
    """
    groups: dict[str, list[Lesson]] = {}
    for place, lesson in enumerate(lessons):
        groups.setdefault(lesson.group or lesson.where or str(place), []).append(lesson)
    names = list(groups)
    random.Random(seed).shuffle(names)
    half = len(lessons) / 2
    wanted = min(HELD_OUT_MOST, int(HELD_OUT_SHARE * len(lessons)))
    held: list[Lesson] = []
    while names and len(held) < wanted:
        name = names.pop()
        if len(held) + len(groups[name]) <= half:
            held += groups.pop(name)
    if not held:
        largest = max(map(len, groups.values()), default=0)
        together = f" in groups of up to {largest}" if largest > 1 else ""
        raise InputError(
            f"too few lessons to hold some out, {len(lessons)}{together}: name dev data ([data.dev])"
        )
    left = [lesson for group in groups.values() for lesson in group]
    return without_overlap(left, held, name="dev", drop=True), held
