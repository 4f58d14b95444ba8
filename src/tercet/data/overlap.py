"""Overlap of two data sets: a model must not be tested on what it was trained on."""

from collections.abc import Collection, Hashable, Iterable, Sequence

from tercet.errors import DataError
from tercet.records import Context, Example, as_text


def comparison_key(text: Context) -> str:
    """The text in lower case with single spaces, so that texts which differ only in those compare as equal.

    Turns are joined: a dialogue of one turn equals its text.
    """
    return " ".join(as_text(text).casefold().split())


def example_key(example: Example) -> Hashable:
    """The comparison keys of the context and the first candidate; equal for duplicates."""
    return comparison_key(example.context), comparison_key(example.candidates[0])


def keys_both_directions(example: Example) -> tuple[Hashable, Hashable]:
    """The key of an example, and its key with context and candidate swapped."""
    left, right = comparison_key(example.context), comparison_key(example.candidates[0])
    return (left, right), (right, left)


def overlap(train: Iterable[Example], other: Iterable[Example]) -> list[int]:
    """Positions in ``train`` of the examples that also occur in ``other``, in either direction."""
    keys = {key for example in other for key in keys_both_directions(example)}
    return [position for position, example in enumerate(train) if example_key(example) in keys]


def without_overlap(
    train: Sequence[Example], other: Collection[Example], *, name: str, drop: bool
) -> list[Example]:
    """The examples of ``train`` that do not occur in ``other``.

    Args:
        name: what errors call ``other``, such as ``test``.
        drop: remove the overlap; without it, any overlap is an error.
    """
    shared = set(overlap(train, other))
    if shared and not drop:
        first = train[min(shared)]
        raise DataError(
            f"{len(shared)} of {len(train)} training rows are in the {name} data too, the first at "
            f"{first.location or min(shared)}: remove them, or set drop_overlap = true for the training data"
        )
    left = [example for position, example in enumerate(train) if position not in shared]
    if not left:
        raise DataError(f"all {len(train)} training rows are in the {name} data: use other training data")
    return left
