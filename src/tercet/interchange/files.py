"""The kinds of files by their suffixes. A new kind is one entry of ``KINDS``."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tercet.errors import DataError, InputError
from tercet.interchange.arrays import open_array, write_array
from tercet.interchange.batches import VectorBatch, VectorSource
from tercet.interchange.faiss_files import open_faiss, write_faiss
from tercet.interchange.parquet import open_parquet, write_parquet
from tercet.settings.interchange import VectorColumns


class Kind(NamedTuple):
    """How files of a kind are written and read."""

    write: Callable[..., int]
    open: Callable[[Path, VectorColumns], VectorSource]


KINDS = {
    ".parquet": Kind(write_parquet, open_parquet),
    ".npy": Kind(write_array, open_array),
    ".faiss": Kind(write_faiss, open_faiss),
}


def kind_of_file(path: Path) -> Kind:
    """How a file is written and read, by its suffix."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"a file of vectors must end in {', '.join(KINDS)}, got {path.name}")
    return kind


def open_vector_files(path: Path, columns: VectorColumns | None = None) -> VectorSource:
    """The vectors in a file, or in all Parquet files of a folder, in the order of their names."""
    columns = columns or VectorColumns()
    if not path.is_dir():
        if not path.is_file():
            raise DataError(f"there is no file {path}: check the name")
        return kind_of_file(path).open(path, columns)
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise DataError(f"{path} has no Parquet files: give a folder of shards, or a file")
    sources = [open_parquet(file, columns) for file in files]
    for one, other in pairwise(sources):
        if one.origin != other.origin:
            raise DataError(
                f"{one.path} and {other.path} have vectors of different models: import one of them"
            )

    def read() -> Iterator[VectorBatch]:
        for source in sources:
            yield from source.read()

    return VectorSource(
        path=path, count=sum(source.count for source in sources), origin=sources[0].origin, read=read
    )
