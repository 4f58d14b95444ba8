"""Segments: vectors that never change, in memory or in memory-mapped files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import BrokenIndexError, FileError
from tercet.files.atomic import new_folder
from tercet.files.digest import file_digest
from tercet.files.structured import read_json, write_json
from tercet.index.dtypes import STORAGES
from tercet.index.quantized import QuantizedVectors
from tercet.records import Bools, Floats, Ints
from tercet.settings.index import Storage

MANIFEST = "segment.json"


class SegmentKey:
    """An object of its own for each segment, to which caches can refer."""


@dataclass(eq=False, slots=True)
class Segment:
    """Rows of vectors with their ids. ``alive`` is false for rows that were removed.

    ``stored`` holds the vectors as the storage encodes them, ``[N, D]``.
    """

    ids: Ints
    stored: NDArray[Any]
    quantized: QuantizedVectors
    storage: Storage
    alive: Bools
    max_norm: float
    """Norm of the longest vector, or slightly more."""
    rows_by_id: "Ints | None" = None
    """The rows sorted by id, computed on first use."""
    key: object = field(default_factory=SegmentKey)
    """Identifies the vectors; a copy in which rows are removed has the same."""

    @classmethod
    def of(cls, ids: Ints, vectors: Floats, storage: Storage = "float32") -> "Segment":
        """A segment of vectors ``[N, D]``, rounded as the storage requires."""
        stored, quantized = STORAGES[storage].encode(vectors)
        max_norm = float((quantized.norms + quantized.errors).max(initial=0.0))
        return cls(ids, stored, quantized, storage, np.ones(len(ids), dtype=np.bool_), max_norm)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        """D, the dimension of the vectors."""
        return int(self.stored.shape[1])

    def vectors(self, rows: "Ints | slice") -> Floats:
        """``[n, D]``: the vectors of some rows in float32."""
        return STORAGES[self.storage].decode(self.stored[rows], self.quantized.scales[rows])

    def blocks(self, size: int) -> Iterator[slice]:
        """Consecutive ranges of at most ``size`` rows."""
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def rows(self, ids: Ints) -> Ints:
        """The row of each id; -1 if the id is not in this segment or was removed."""
        if self.rows_by_id is None:
            self.rows_by_id = np.argsort(self.ids, kind="stable")
        found = np.searchsorted(self.ids, ids, sorter=self.rows_by_id)
        rows = self.rows_by_id[np.minimum(found, len(self) - 1)]
        return np.where((self.ids[rows] == ids) & self.alive[rows], rows, -1)

    def without(self, ids: Ints) -> "Segment":
        """The same vectors with some ids marked as removed."""
        rows = self.rows(ids)
        alive = self.alive.copy()
        alive[rows[rows >= 0]] = False
        return replace(self, alive=alive)

    def compacted(self) -> "Segment":
        """A copy without the rows that were removed."""
        rows = np.flatnonzero(self.alive)
        return Segment.of(self.ids[rows], self.vectors(rows), self.storage)

    def save(self, folder: Path) -> None:
        """Write the files of a new folder, and their digests."""
        arrays = self._arrays()
        with new_folder(folder) as partial:
            for name, values in arrays.items():
                np.save(partial / f"{name}.npy", values, allow_pickle=False)
            digests = {name: file_digest(partial / f"{name}.npy") for name in arrays}
            manifest = {"storage": self.storage, "rows": len(self), "max_norm": self.max_norm}
            write_json(partial / MANIFEST, manifest | {"digests": digests})

    @classmethod
    def load(cls, folder: Path) -> "Segment":
        """The segment in a folder, memory-mapped; only the lengths of its files are checked."""
        manifest = _read_manifest(folder)
        arrays = {name: open_array(folder / f"{name}.npy") for name in manifest["digests"]}
        count = int(manifest["rows"])
        lengths = {name: len(values) for name, values in arrays.items()}
        if any(length != count for length in lengths.values()):
            raise BrokenIndexError(
                f'the files of {folder} must have {count} rows, got {lengths}: run "tercet index repair"'
            )
        quantized = QuantizedVectors(arrays["quantized"], arrays["scales"], arrays["errors"], arrays["norms"])
        return cls(
            ids=arrays["ids"],
            stored=arrays.get("vectors", quantized.values),
            quantized=quantized,
            storage=manifest["storage"],
            alive=np.ones(count, dtype=np.bool_),
            max_norm=float(manifest["max_norm"]),
        )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by the names of their files; ``vectors`` only if they differ from ``quantized``."""
        arrays: dict[str, NDArray[Any]] = {
            "ids": self.ids,
            "quantized": self.quantized.values,
            "scales": self.quantized.scales,
            "errors": self.quantized.errors,
            "norms": self.quantized.norms,
        }
        return arrays if self.stored is self.quantized.values else arrays | {"vectors": self.stored}


def segment_problem(folder: Path) -> str:
    """What is wrong with the files of a segment; empty if they are as they were written."""
    try:
        manifest = _read_manifest(folder)
        Segment.load(folder)
        digests = manifest["digests"].items()
        changed = [name for name, digest in digests if file_digest(folder / f"{name}.npy") != digest]
    except (BrokenIndexError, AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        return str(error)
    return f"modified after they were written: {', '.join(changed)}" if changed else ""


def merge_segments(segments: Sequence[Segment], storage: Storage) -> Segment:
    """One segment of the rows of several that were not removed."""
    alive = [(segment, np.flatnonzero(segment.alive)) for segment in segments]
    ids = np.concatenate([segment.ids[rows] for segment, rows in alive])
    return Segment.of(ids, np.concatenate([segment.vectors(rows) for segment, rows in alive]), storage)


def open_array(file: Path) -> NDArray[Any]:
    """The array in a ``.npy`` file, memory-mapped and read-only."""
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BrokenIndexError(
            f'{file} is missing or truncated ({error}): run "tercet index repair"'
        ) from None
    return array.view(np.ndarray)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        return read_json(folder / MANIFEST)
    except FileError as error:
        raise BrokenIndexError(f'{error}: run "tercet index repair"') from None
