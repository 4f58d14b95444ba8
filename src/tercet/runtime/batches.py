"""Which texts are computed together: batches of about equal work, longest texts first."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tercet.config import BatchConfig

Item = TypeVar("Item")


def batches_by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Positions of texts, longest first, in batches of at most ``budget`` real tokens.

    A text longer than the budget gets a batch of its own. Sorting brings equal lengths together, which is
    what packing needs, and puts the largest batch first, so that memory runs out early or not at all.
    """
    batches: list[list[int]] = []
    filled = budget
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if filled + lengths[position] > budget:
            batches.append([])
            filled = 0
        batches[-1].append(position)
        filled += lengths[position]
    return batches


def windows(
    items: Iterable[Item], config: BatchConfig, *, size_of: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Consecutive runs of ``items`` that fit in memory whatever their number and length."""
    window: list[Item] = []
    characters = 0
    for item in items:
        window.append(item)
        characters += size_of(item)
        if len(window) == config.window_texts or characters >= config.window_characters:
            yield window
            window, characters = [], 0
    if window:
        yield window
