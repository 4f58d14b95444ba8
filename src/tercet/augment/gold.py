"""What people have labelled, in one shape: context, candidate and score."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.augment.recipe import AugmentRecipe, TextsConfig
from tercet.augment.silver import Range
from tercet.data.columns import check_column
from tercet.data.overlap import folded, overlap, without_overlap
from tercet.data.readers import DataConfig, all_lessons
from tercet.data.sources import open_source
from tercet.errors import DataError
from tercet.inputs import check_text
from tercet.records import Lesson, as_text


@dataclass(frozen=True)
class Gold:
    """To learn from, to choose by, and to measure with, nothing in common."""

    train: list[Lesson]
    dev: list[Lesson]
    test: list[Lesson]

    def texts(self) -> list[str]:
        """Those to learn from."""
        return [text for lesson in self.train for text in (as_text(lesson.context), lesson.candidates[0])]

    def known(self) -> set[tuple[str, str]]:
        """Every pair that has a label, both ways round: none of them may come back as silver."""
        pairs = {
            (folded(lesson.context), folded(lesson.candidates[0]))
            for lesson in (*self.train, *self.dev, *self.test)
        }
        return pairs | {(right, left) for left, right in pairs}

    def scores(self) -> NDArray[np.float64]:
        """Of the pairs to learn from."""
        return targets(self.train)


def read_gold(recipe: AugmentRecipe, scores: Range, root: Path | None) -> Gold:
    """The three sets, checked."""
    train, dev, test = (all_lessons(each, root=root) for each in (recipe.train, recipe.dev, recipe.test))
    for name, lessons in (("train", train), ("dev", dev), ("test", test)):
        _check(lessons, name, scores)
    drop = recipe.train.drop_overlap
    if (shared := overlap(dev, test)) and not drop:
        raise DataError(
            f"{len(shared)} of {len(dev)} dev rows are in the test data too, the first at "
            f"{dev[shared[0]].where}: remove them, or set drop_overlap = true for the training data, "
            "which leaves them out"
        )
    dev = without_overlap(dev, test, name="test", drop=True)
    for name, other in (("test", test), ("dev", dev)):
        train = without_overlap(train, other, name=name, drop=drop)
    return Gold(train, dev, test)


def read_texts(config: TextsConfig, root: Path | None) -> Iterable[str]:
    """The texts of files, streamed; empty ones too, which nobody pairs."""
    for name in config.files:
        for row in open_source(name, root=root):
            for column in config.columns:
                yield check_column(row, column, _text)


def write_lessons(lessons: Sequence[Lesson], file: Path) -> None:
    """A file that the reader of pairs reads."""
    write_rows(
        (
            {"context": each.context, "candidate": each.candidates[0], "score": each.targets[0]}
            for each in lessons
        ),
        file,
    )


def write_rows(rows: Iterable[Mapping[str, object]], file: Path) -> None:
    """A file of JSON Lines."""
    with file.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def pairs_in(*files: Path) -> DataConfig:
    """Files that ``write_lessons`` or ``write_pairs`` wrote, as training data."""
    return DataConfig(files=tuple(str(file.resolve()) for file in files))


def targets(lessons: Sequence[Lesson]) -> NDArray[np.float64]:
    """``[N]``: the score of each."""
    return np.array([lesson.targets[0] for lesson in lessons])


def _text(value: object, name: str) -> str:
    """As any text, but it may be empty: nobody pairs it then."""
    return "" if isinstance(value, str) and not value.strip() else check_text(value, name)


def _check(lessons: Sequence[Lesson], name: str, scores: Range) -> None:
    for lesson in lessons:
        if not isinstance(lesson.context, str):
            raise DataError(f"{lesson.where}: gold is pairs of two texts, and this context has turns")
    found = targets(lessons)
    for lesson, score in zip(lessons, found.tolist(), strict=True):
        if not scores.lowest <= score <= scores.highest:
            raise DataError(
                f"{lesson.where}: the score must lie between {scores.lowest:g} and {scores.highest:g}, "
                f"got {score:g}: say what gold's scores mean with lowest and highest in the student's "
                "[objective]"
            )
    if len(np.unique(found)) < 2:
        raise DataError(
            f"all {len(lessons)} pairs of the {name} data have the score {found[0]:g}: nothing can be "
            "learnt or measured with one score"
        )
