"""Random negatives: answers of other examples."""

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from tercet.errors import InputError

Answer = TypeVar("Answer")


def check_enough(answers: Sequence[object], count: int) -> None:
    """Raise if there are too few different answers to draw ``count`` negatives from."""
    if count and len(answers) <= count:
        raise InputError(
            f"cannot draw {count} negatives from {len(answers)} different answers: set negatives to a "
            "lower number"
        )


def draw_negatives(
    answers: Sequence[Answer], own: Collection[Answer], count: int, rng: random.Random
) -> list[Answer]:
    """``count`` random answers that are not among an example's own candidates.

    Args:
        answers: all different answers, more than ``count``.
        own: the candidates of the example.
    """
    drawn = rng.sample(answers, count + 1)
    return [answer for answer in drawn if answer not in own][:count]
