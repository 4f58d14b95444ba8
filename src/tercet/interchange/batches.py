"""Candidates with their vectors, in batches of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tercet.errors import DataError
from tercet.index.base import LARGEST
from tercet.index.items import Item
from tercet.interchange.origin import Origin
from tercet.records import Floats

ROWS_AT_ONCE = 8192
"""Candidates in a row group of a Parquet file, and in a batch that is stored."""


class VectorBatch(NamedTuple):
    """Candidates and their vectors ``[C, D]``."""

    items: list[Item]
    vectors: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorSource:
    """Vectors that can be read: how many there are, and the model that made them, if the files say so."""

    path: Path
    count: int
    origin: Origin | None
    read: Callable[[], Iterator[VectorBatch]]
    """Reads all batches from the first one on."""


def regrouped(batches: Iterable[VectorBatch], size: int = ROWS_AT_ONCE) -> Iterator[VectorBatch]:
    """The same candidates in batches of ``size``; the last one may be smaller."""
    items: list[Item] = []
    parts: list[Floats] = []
    for batch in batches:
        items, parts = items + batch.items, [*parts, batch.vectors]
        while len(items) >= size:
            vectors = np.concatenate(parts)
            yield VectorBatch(items[:size], vectors[:size])
            items, parts = items[size:], [vectors[size:]]
    if items:
        yield VectorBatch(items, np.concatenate(parts))


def after(batches: Iterable[VectorBatch], count: int) -> Iterator[VectorBatch]:
    """The batches without the first ``count`` candidates."""
    for items, vectors in batches:
        skipped = min(count, len(items))
        count -= skipped
        if skipped < len(items):
            yield VectorBatch(items[skipped:], vectors[skipped:])


def checked(batches: Iterable[VectorBatch], path: Path, width: int) -> Iterator[VectorBatch]:
    """The batches, if every vector has the width of the model and finite numbers of a possible size."""
    row = 0
    for items, vectors in batches:
        if vectors.shape[1] != width:
            raise DataError(
                f"{path}: the vectors have {vectors.shape[1]} dimensions, and those of the model {width}: "
                "name "
                "the model that made them (--model)"
            )
        wrong = np.flatnonzero(~(np.isfinite(vectors).all(axis=1) & (abs(vectors).max(axis=1) <= LARGEST)))
        if len(wrong):
            raise DataError(
                f"{path}, row {row + int(wrong[0])}: the vector of {items[int(wrong[0])].id!r} must have "
                "finite "
                f"numbers of at most {LARGEST:g}: encode this candidate again"
            )
        row += len(items)
        yield VectorBatch(items, vectors)
