"""The candidates of a store as a JSONL file, and their vectors as an ``.npy`` file."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import numpy as np

from tercet.errors import BrokenIndexError, InputError
from tercet.files.atomic import check_free, new_file
from tercet.files.structured import json_text
from tercet.files.vectors import writing_vectors
from tercet.index.database import Database
from tercet.index.reading import stored_items
from tercet.index.store import DATABASE

if TYPE_CHECKING:
    from tercet.index.exact import ExactIndex
    from tercet.index.items import Item
    from tercet.index.store import Store
    from tercet.records import Floats

Append: TypeAlias = Callable[[list[int]], None]
"""Writes the vectors of candidates, by number."""


def export_items(store: "Store", path: Path, *, vectors: Path | None = None, overwrite: bool = False) -> int:
    """Write id, text and metadata of each candidate, one per line; returns how many were written.

    Args:
        vectors: an ``.npy`` file for the vectors in the same order. Nobody else can write meanwhile.
    """
    if not len(store):
        raise InputError(f"{store.path} has no candidates to export")
    if vectors is not None and store.is_chunked:
        raise InputError(f"{store.path} has a vector for each chunk: export its candidates without vectors")
    if vectors is not None and vectors.resolve() == path.resolve():
        raise InputError(f"candidates and vectors need a file each, got {path} for both")
    for file in (path, vectors):
        if file is not None:
            check_free(file, overwrite=overwrite)
    with ExitStack() as stack:
        append = None
        if vectors is not None:
            stack.enter_context(store.writer())
            append = stack.enter_context(_vectors_to(vectors, store.index(), overwrite=overwrite))
        lines = stack.enter_context(_lines_to(path, overwrite=overwrite))
        # a connection of its own reads one state of the store, and other threads need not wait
        database = stack.enter_context(closing(Database(store.path / DATABASE)))
        stack.enter_context(database.transaction(write=False))
        return sum(_export_batch(items, lines, append) for items in stored_items(database))


@contextmanager
def stored_batches(store: "Store") -> "Iterator[Iterator[tuple[list[Item], Floats]]]":
    """All candidates with their vectors ``[C, D]``, in batches. Nobody else can write meanwhile."""
    with store.writer(), closing(Database(store.path / DATABASE)) as database:
        index = store.index()
        with database.transaction(write=False):
            yield ((list(items.values()), vectors_of(index, list(items))) for items in stored_items(database))


def _export_batch(items: "dict[int, Item]", lines: TextIO, append: "Append | None") -> int:
    lines.writelines(f"{json_text(as_dict(item))}\n" for item in items.values())
    if append is not None:
        append(list(items))
    return len(items)


@contextmanager
def _lines_to(path: Path, *, overwrite: bool) -> Iterator[TextIO]:
    with new_file(path, overwrite=overwrite) as partial, partial.open("w", encoding="utf-8") as file:
        yield file


@contextmanager
def _vectors_to(path: Path, index: "ExactIndex", *, overwrite: bool) -> "Iterator[Append]":
    with writing_vectors(path, overwrite=overwrite) as writer:
        yield lambda numbers: writer.append(vectors_of(index, numbers))


def as_dict(item: "Item") -> dict[str, Any]:
    """A candidate as JSON holds it, in a form that ``Retriever.add`` takes."""
    return {"id": item.id, "text": item.text, "metadata": dict(item.metadata or {})}


def vectors_of(index: "ExactIndex", numbers: list[int]) -> "Floats":
    """``[C, D]``: the vectors of candidates, by number."""
    wanted = np.array(numbers, dtype=np.int64)
    vectors = np.empty((len(wanted), index.width), dtype=np.float32)
    missing = np.ones(len(wanted), dtype=np.bool_)
    for segment in index.segments:
        rows = segment.rows(wanted)
        vectors[rows >= 0] = segment.vectors(rows[rows >= 0])
        missing &= rows < 0
    if missing.any():
        raise BrokenIndexError(f'{missing.sum():,} candidates have no vector: run "tercet index repair"')
    return vectors
