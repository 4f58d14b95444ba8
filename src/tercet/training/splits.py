"""Training, dev and test data that have no example in common."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tercet.data.overlap import without_overlap
from tercet.data.readers import read_examples
from tercet.errors import DataError, InputError
from tercet.records import Example
from tercet.settings.recipe import Recipe

HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 1000


@dataclass(frozen=True)
class DataSplits:
    """The three splits of a recipe; test data is optional."""

    train: Sequence[Example]
    dev: Sequence[Example]
    test: Sequence[Example]

    def by_name(self) -> dict[str, Sequence[Example]]:
        """The splits that have examples."""
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: examples for name, examples in splits.items() if examples}


def read_splits(recipe: Recipe, root: Path | None, *, later_test: Sequence[Example] = ()) -> DataSplits:
    """The data of a recipe; overlap with dev and test data is removed or refused, as the recipe says.

    Args:
        later_test: test data of a later recipe, which must not be trained on.
    """
    drop = recipe.train.drop_overlap
    train = read_examples(recipe.train, root=root)
    if later_test:
        train = without_overlap(train, later_test, name="later test", drop=drop)
    test = read_examples(recipe.test, root=root) if recipe.test else []
    if test:
        train = without_overlap(train, test, name="test", drop=drop)
    if recipe.dev is None:
        train, dev = hold_out(train, seed=recipe.training.seed)
    else:
        dev = read_examples(recipe.dev, root=root)
        train = without_overlap(train, dev, name="dev", drop=drop)
    return DataSplits(in_both_directions(train) if recipe.train.both_directions else train, dev, test)


def in_both_directions(examples: Sequence[Example]) -> list[Example]:
    """Each pair, followed by each pair with its texts exchanged."""
    exchanged = []
    for example in examples:
        if not isinstance(example.context, str) or len(example.candidates) != 1:
            raise DataError(f"{example.location}: both_directions needs pairs of two texts")
        exchanged.append(replace(example, context=example.candidates[0], candidates=(example.context,)))
    return [*examples, *exchanged]


def hold_out(
    examples: Sequence[Example], *, seed: int, split: str = "dev"
) -> tuple[list[Example], list[Example]]:
    """Training examples, and a tenth (at most about 1,000) as dev data; groups stay together.

    A group with more than half of all examples stays in the training data.
    """
    groups: dict[str, list[Example]] = {}
    for position, example in enumerate(examples):
        groups.setdefault(example.group or example.location or str(position), []).append(example)
    names = list(groups)
    random.Random(seed).shuffle(names)
    half = len(examples) / 2
    wanted = min(MAX_HELD_OUT, int(HELD_OUT_SHARE * len(examples)))
    held_out: list[Example] = []
    while names and len(held_out) < wanted:
        name = names.pop()
        if len(held_out) + len(groups[name]) <= half:
            held_out += groups.pop(name)
    if not held_out:
        largest = max(map(len, groups.values()), default=0)
        grouped = f" in groups of up to {largest}" if largest > 1 else ""
        raise InputError(
            f"too few examples to hold out {split} data, {len(examples)}{grouped}: add {split} data "
            f"([data.{split}])"
        )
    kept = [example for group in groups.values() for example in group]
    return without_overlap(kept, held_out, name=split, drop=True), held_out
