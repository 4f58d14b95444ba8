"""Candidates as an index stores them, without their vectors."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tercet.errors import InputError
from tercet.files.digest import rows_digest
from tercet.files.structured import not_finite_places
from tercet.inputs import SHOWN_CHARACTERS, check_string, shortened


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate. An empty ``id`` is replaced by a number; searches can filter by ``metadata``.

    Without ``metadata``, an update keeps what is stored; an empty mapping clears it.
    """

    id: str
    text: str
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_string("the id of an Item", self.id)
        check_string("the text of an Item", self.text)


def assign_ids(
    items: Sequence[Item], first: int, existing: Callable[[Sequence[str]], Collection[str]]
) -> Iterator[Item]:
    """Items with ids: one without gets its number, followed by ``+`` as long as that id is taken.

    Args:
        first: the number of the first item.
        existing: returns those of some ids that the index has already.
    """
    numbers = [str(first + position) for position in range(len(items))]
    taken = {item.id for item in items} | set(existing(numbers))
    for number, item in zip(numbers, items, strict=True):
        id_ = item.id or number
        while not item.id and (id_ in taken or (id_ != number and existing([id_]))):
            id_ += "+"
        taken.add(id_)
        yield item if item.id else replace(item, id=id_)


def row_of(item: Item) -> tuple[str, str, str]:
    """The id, text and metadata of an item as a database stores them."""
    try:
        metadata = json.dumps(dict(item.metadata or {}), ensure_ascii=False, allow_nan=False)
        for text in (item.id, item.text, metadata):
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = next(not_finite_places(item.metadata), None) or error
        name = repr(item.id) if item.id else f"with the text {shortened(repr(item.text), SHOWN_CHARACTERS)}"
        raise InputError(f"candidate {name} cannot be stored as JSON: {reason}") from None
    return item.id, item.text, metadata


def items_digest(before: str, items: Iterable[Item]) -> str:
    """The digest of items that follow others, whose digest is ``before``."""
    for item in items:
        before = rows_digest([before, *row_of(item)])
    return before
