"""``.npy`` files of vectors, with their candidates beside them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from tercet.errors import DataError
from tercet.files.atomic import check_free, new_file
from tercet.files.vectors import open_vectors, writing_vectors
from tercet.interchange.batches import ROWS_AT_ONCE, VectorBatch, VectorSource
from tercet.interchange.items_file import (
    item_line,
    items_of,
    items_path,
    origin_path,
    read_origin,
    write_origin,
)
from tercet.interchange.origin import Origin
from tercet.records import Floats
from tercet.settings.interchange import VectorColumns


def write_array(
    path: Path, batches: Iterable[VectorBatch], origin: Origin, *, overwrite: bool = False
) -> int:
    """Write vectors, and their candidates and origin beside them; returns how many."""
    beside = items_path(path)
    for file in (beside, origin_path(path)):
        check_free(file, overwrite=overwrite)
    with (
        writing_vectors(path, overwrite=overwrite) as writer,
        new_file(beside, overwrite=overwrite) as partial,
        partial.open("w", encoding="utf-8") as lines,
    ):
        for items, vectors in batches:
            writer.append(vectors)
            lines.writelines(map(item_line, items))
        count = writer.count
    write_origin(path, origin, overwrite=overwrite)
    return count


def open_array(path: Path, columns: VectorColumns) -> VectorSource:
    """The vectors in a ``.npy`` file, memory-mapped; the candidates are in the JSONL file beside it."""
    vectors = open_vectors(path)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(
            f"{path} must have floating-point vectors [count, dimensions], got {vectors.dtype} "
            f"{vectors.shape}"
        )

    def read() -> Iterator[VectorBatch]:
        return with_items(path, (_block(vectors, start) for start in range(0, len(vectors), ROWS_AT_ONCE)))

    return VectorSource(path=path, count=len(vectors), origin=read_origin(path), read=read)


def with_items(path: Path, blocks: Iterable[Floats]) -> Iterator[VectorBatch]:
    """Blocks of vectors with the candidates beside their file."""
    waiting: list[Floats] = []

    def counts() -> Iterator[int]:
        for block in blocks:
            waiting.append(block)
            yield len(block)

    for items in items_of(path, counts()):
        yield VectorBatch(items, waiting.pop())


def _block(vectors: Floats, start: int) -> Floats:
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, which is refused later
        return np.ascontiguousarray(vectors[start : start + ROWS_AT_ONCE], dtype=np.float32)
