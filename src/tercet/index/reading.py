"""Candidates read from the database of a store, by id or one after another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.errors import InputError
from tercet.index.conditions import SHOWN_VALUES
from tercet.inputs import listed

if TYPE_CHECKING:
    from tercet.index.database import Database
    from tercet.index.items import Item

READ_AT_ONCE = 1000


def stored_items(database: "Database") -> "Iterator[dict[int, Item]]":
    """All candidates by number, in batches and in the order in which they were stored."""
    last = -1
    while True:
        rows = database.query(
            "SELECT number FROM candidates WHERE number > ? ORDER BY number LIMIT ?", [last, READ_AT_ONCE]
        )
        if not rows:
            return
        numbers = np.array([number for (number,) in rows], dtype=np.int64)
        last = int(numbers[-1])
        items = database.items(numbers)
        yield {number: items[number] for number in numbers.tolist() if number in items}


def items_by_id(database: "Database", ids: Sequence[str]) -> "dict[str, Item]":
    """Candidates by id; unknown ids are left out."""
    numbers = np.array(list(database.numbers(ids).values()), dtype=np.int64)
    return {item.id: item for item in database.items(numbers).values()}


def get_items(database: "Database", ids: Sequence[str]) -> "list[Item]":
    """The candidates with these ids, which must exist."""
    known = items_by_id(database, ids)
    unknown = [id_ for id_ in ids if id_ not in known]
    if unknown:
        raise InputError(f"the index has no candidate {listed(unknown, most=SHOWN_VALUES)}")
    return [known[id_] for id_ in ids]


def with_stored_metadata(items: "Sequence[Item]", database: "Database") -> "list[Item]":
    """The items with the metadata that is stored under their ids, changed by their own."""
    stored = items_by_id(database, [item.id for item in items])
    return [
        replace(item, metadata=merged(stored[item.id].metadata, item.metadata)) if item.id in stored else item
        for item in items
    ]


def merged(stored: Mapping[str, Any] | None, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The stored metadata with the given values; a value of None removes its key."""
    both = {**(stored or {}), **(given or {})}
    return {key: value for key, value in both.items() if value is not None or key not in (given or {})}
