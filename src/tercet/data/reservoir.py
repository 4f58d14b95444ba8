"""Random samples of streams."""

import random
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def reservoir_sample(items: Iterable[Item], count: int, *, seed: int) -> list[Item]:
    """A uniform random sample of at most ``count`` items, in their order; only ``count`` are in memory."""
    rng = random.Random(seed)
    kept: list[tuple[int, Item]] = []
    for number, item in enumerate(items):
        if len(kept) < count:
            kept.append((number, item))
        elif (position := rng.randrange(number + 1)) < count:
            kept[position] = (number, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]
