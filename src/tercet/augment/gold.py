"""Gold data: labelled pairs."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.augment.silver import ScoreRange
from tercet.data.columns import check_column
from tercet.data.overlap import comparison_key, overlap, without_overlap
from tercet.data.readers import read_examples
from tercet.data.sources import open_source
from tercet.errors import DataError
from tercet.files.structured import json_text
from tercet.inputs import check_text
from tercet.records import Example, as_text
from tercet.settings.augment import AugmentRecipe, TextsConfig
from tercet.settings.data import DataConfig
from tercet.training.splits import hold_out

MIN_SPAN = 0.5
"""Scores that cover less than this share of the objective's range probably have another range."""


@dataclass(frozen=True)
class Gold:
    """Labelled training, dev and test pairs, which have no pair in common."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]

    def texts(self) -> list[str]:
        """The texts of the training pairs."""
        return [text for example in self.train for text in (as_text(example.context), example.candidates[0])]

    def known_pairs(self) -> set[tuple[str, str]]:
        """The keys of all labelled pairs in both directions: none of them may become silver."""
        pairs = {
            (comparison_key(example.context), comparison_key(example.candidates[0]))
            for example in (*self.train, *self.dev, *self.test)
        }
        return pairs | {(right, left) for left, right in pairs}

    def scores(self) -> NDArray[np.float64]:
        """The scores of the training pairs."""
        return scores_of(self.train)


def read_gold(recipe: AugmentRecipe, scores: ScoreRange, root: Path | None) -> Gold:
    """The three sets of labelled pairs, checked; dev and test data that the recipe lacks are held out."""
    train = read_examples(recipe.train, root=root)
    given = {"test": recipe.test, "dev": recipe.dev}
    others = {split: read_examples(data, root=root) for split, data in given.items() if data is not None}
    for split in given:
        if split not in others:
            train, others[split] = hold_out(train, seed=0, split=split)
    test, dev = others["test"], others["dev"]
    for split, examples in (("train", train), ("dev", dev), ("test", test)):
        _check(examples, split, scores)
    drop = recipe.train.drop_overlap
    if (shared := overlap(dev, test)) and not drop:
        raise DataError(
            f"{len(shared)} of {len(dev)} dev rows are also in the test data, the first at "
            f"{dev[shared[0]].location}: remove them, or set drop_overlap = true for the training data"
        )
    dev = without_overlap(dev, test, name="test", drop=True)
    for split, other in (("test", test), ("dev", dev)):
        train = without_overlap(train, other, name=split, drop=drop)
    return Gold(train, dev, test)


def read_texts(config: TextsConfig, root: Path | None) -> Iterable[str]:
    """The texts of files, as a stream; empty texts are included."""
    for name in config.files:
        for row in open_source(name, root=root):
            for column in config.columns:
                yield check_column(row, column, _text)


def write_examples(examples: Sequence[Example], file: Path) -> None:
    """Write a file for the reader ``pairs``."""
    write_rows(
        (
            {"context": each.context, "candidate": each.candidates[0], "score": each.targets[0]}
            for each in examples
        ),
        file,
    )


def write_rows(rows: Iterable[Mapping[str, object]], file: Path) -> None:
    """Write a JSON Lines file."""
    with file.open("w", encoding="utf-8") as out:
        out.writelines(json_text(row) + "\n" for row in rows)


def pairs_in(*files: Path) -> DataConfig:
    """Files of ``write_examples`` or ``write_pairs`` as a data set."""
    return DataConfig(files=tuple(str(file.resolve()) for file in files))


def scores_of(examples: Sequence[Example]) -> NDArray[np.float64]:
    """``[N]``: the score of each pair."""
    return np.array([example.targets[0] for example in examples])


def _text(value: object, name: str) -> str:
    """A text, which may be empty."""
    return "" if isinstance(value, str) and not value.strip() else check_text(value, name)


def _check(examples: Sequence[Example], split: str, scores: ScoreRange) -> None:
    for example in examples:
        if not isinstance(example.context, str):
            raise DataError(
                f"{example.location}: gold data needs pairs of two texts, and this context has turns"
            )
    found = scores_of(examples)
    for example, score in zip(examples, found.tolist(), strict=True):
        if not scores.min_score <= score <= scores.max_score:
            raise DataError(
                f"{example.location}: the score must be from {scores.min_score:g} to {scores.max_score:g}, "
                f"got {score:g}: set min_score and max_score in the [objective] of labeller and student to "
                f"the range of the data, which is {found.min():g} to {found.max():g} here"
            )
    if len(np.unique(found)) < 2:
        raise DataError(
            f"all {len(examples)} pairs of the {split} data have the score {found[0]:g}: nothing can be "
            "learnt or measured with one score"
        )
    if split == "test" and len(np.unique(found)) == 2:
        return  # matches and non-matches of another domain, which are only ranked
    if found.max() - found.min() < MIN_SPAN * (scores.max_score - scores.min_score):
        warnings.warn(
            f"the scores of the {split} data range from {found.min():g} to {found.max():g}, and [objective] "
            f"says {scores.min_score:g} to {scores.max_score:g}: set min_score and max_score to the range of "
            "the data",
            stacklevel=2,
        )
