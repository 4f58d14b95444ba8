"""Some of many, by chance."""

import random
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def drawn(items: Iterable[Item], count: int, *, seed: int) -> list[Item]:
    """``count`` of them, each as likely as any other, in their order; only so many are held."""
    chance = random.Random(seed)
    kept: list[tuple[int, Item]] = []
    for number, item in enumerate(items):
        if len(kept) < count:
            kept.append((number, item))
        elif (place := chance.randrange(number + 1)) < count:
            kept[place] = (number, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]
