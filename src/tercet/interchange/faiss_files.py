"""faiss files of vectors, with their candidates beside them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tercet.errors import DataError, OutputError
from tercet.files.atomic import check_free, new_file
from tercet.index.faiss_index import import_faiss, read_index
from tercet.interchange.arrays import with_items
from tercet.interchange.batches import ROWS_AT_ONCE, VectorBatch, VectorSource
from tercet.interchange.items_file import (
    item_line,
    items_path,
    origin_path,
    read_origin,
    write_origin,
)
from tercet.interchange.origin import Origin
from tercet.records import Floats
from tercet.settings.interchange import VectorColumns


def write_faiss(
    path: Path, batches: Iterable[VectorBatch], origin: Origin, *, overwrite: bool = False
) -> int:
    """Write an ``IndexFlatIP``, and its candidates and origin beside it; returns how many.

    faiss writes an index as a whole, so all vectors are in memory.
    """
    faiss, beside = import_faiss(), items_path(path)
    for file in (path, beside, origin_path(path)):
        check_free(file, overwrite=overwrite)
    index = faiss.IndexFlatIP(origin.width)
    with new_file(beside, overwrite=overwrite) as partial, partial.open("w", encoding="utf-8") as lines:
        for items, vectors in batches:
            index.add(np.ascontiguousarray(vectors))
            lines.writelines(map(item_line, items))
    with new_file(path, overwrite=overwrite) as partial:
        try:
            faiss.write_index(index, str(partial))
        except RuntimeError as error:  # faiss has no error of its own for a full disk
            raise OutputError(f"cannot write to {path.parent}: {error}") from None
    write_origin(path, origin, overwrite=overwrite)
    return int(index.ntotal)


def open_faiss(path: Path, columns: VectorColumns) -> VectorSource:
    """The vectors in a faiss file, if it holds them as they were given: a flat index for inner products."""
    faiss = import_faiss()
    if not path.is_file():
        raise DataError(f"there is no file {path}: check the name")
    index = read_index(path)
    if not isinstance(index, faiss.IndexFlat) or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise DataError(
            f"{path} must be an IndexFlatIP, which has the vectors themselves, got {type(index).__name__}: "
            "write "
            "your vectors to .npy or Parquet"
        )

    def read() -> Iterator[VectorBatch]:
        return with_items(path, (_block(index, start) for start in range(0, index.ntotal, ROWS_AT_ONCE)))

    return VectorSource(path=path, count=int(index.ntotal), origin=read_origin(path), read=read)


def _block(index: Any, start: int) -> Floats:
    vectors: Floats = index.reconstruct_n(start, min(ROWS_AT_ONCE, index.ntotal - start))
    return vectors
