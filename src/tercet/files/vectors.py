"""``.npy`` files of vectors, written as a stream and read through a memory map."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from tercet.errors import DataError, InputError
from tercet.files.atomic import new_file, writing
from tercet.records import Floats

NO_TEXTS = "there are no texts to encode: give at least one"


class VectorWriter:
    """Appends vectors to an open ``.npy`` file whose length is known only at the end.

    numpy leaves room in the header for the first dimension to grow, so the header is written first and
    corrected last.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.count = 0
        self._file = file
        self._shape: tuple[int, ...] | None = None

    @property
    def width(self) -> int:
        """D, the dimension of the vectors; 0 before the first one."""
        return self._shape[-1] if self._shape else 0

    def append(self, vectors: Floats) -> None:
        """Add ``[n, ..., D]`` vectors; all calls must agree in all dimensions but the first."""
        if self._shape is None:
            self._shape = vectors.shape[1:]
            self._write_header()
        if vectors.shape[1:] != self._shape:
            raise InputError(f"vectors must have the shape {self._shape}, got {vectors.shape[1:]}")
        with writing(Path(self._file.name)):
            self._file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
        self.count += len(vectors)

    def finish(self) -> None:
        """Write the final count into the header."""
        if self.count == 0:
            raise InputError(NO_TEXTS)
        with writing(Path(self._file.name)):
            self._file.seek(0)
            self._write_header()
            self._file.flush()

    def _write_header(self) -> None:
        shape = (self.count, *(self._shape or ()))
        npy.write_array_header_1_0(self._file, {"descr": "<f4", "fortran_order": False, "shape": shape})


@contextmanager
def writing_vectors(path: Path, *, overwrite: bool = False) -> Iterator[VectorWriter]:
    """A writer whose file appears under its name on success and is removed on failure."""
    with new_file(path, overwrite=overwrite) as partial:
        file = partial.open("w+b")
        try:
            writer = VectorWriter(file)
            yield writer
            writer.finish()
        finally:
            with suppress(OSError):  # after `finish` nothing is left to write; before it, the file is removed
                file.close()


def open_vectors(path: Path) -> Floats:
    """The vectors in a ``.npy`` file, memory-mapped and read-only."""
    try:
        vectors: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a complete .npy file: {error}") from None
    return vectors
