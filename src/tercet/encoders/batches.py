"""Batches of about equal work for inference, longest texts first."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from tercet.settings.encoding import EncodingConfig

Item = TypeVar("Item")
Observer = Callable[[int], None]

_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)


def batches_by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Positions of texts, longest first, in batches of at most ``budget`` tokens.

    A text longer than the budget gets a batch of its own. Sorting makes texts of equal length adjacent, which
    packing needs, and puts the largest batch first, so that memory runs out early or not at all.
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


def observed(batches: Iterable[list[int]]) -> Iterator[list[int]]:
    """The batches; after each one, the observer is called with the number of its texts or pairs."""
    observer = _OBSERVER.get()
    for batch in batches:
        yield batch
        if observer is not None:
            observer(len(batch))


@contextmanager
def observing_batches(observer: Observer) -> Iterator[None]:
    """Meanwhile, call ``observer`` after every batch that a model has processed in this thread."""
    before = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(before)


def windows(
    items: Iterable[Item], config: EncodingConfig, *, size_of: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Consecutive items in lists that fit into memory, however many and however long the items are."""
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
