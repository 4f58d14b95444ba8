"""Vectors that do not change, in memory or in the files of a folder, which are mapped into memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.errors import BrokenIndexError, ModelError
from tercet.files import new_folder, read_json, write_json
from tercet.index.sketch import Sketch, restore, sketch
from tercet.records import Counts, Flags, Floats

Storage: TypeAlias = Literal["float32", "bfloat16", "int8"]
STORAGES: tuple[Storage, ...] = get_args(Storage)

ABOUT = "segment.json"
SIXTEEN = np.uint32(16)


@dataclass(eq=False, slots=True)
class Segment:
    """Rows of vectors with their ids; ``alive`` says which of them were not removed since.

    ``kept`` holds the vectors as they are stored, ``[N, D]``: in float32, the upper halves of that
    (bfloat16), or the whole numbers of the sketch itself (int8).
    """

    ids: Counts
    kept: NDArray[Any]
    sketch: Sketch
    storage: Storage
    alive: Flags
    longest: float
    """The length of the longest vector."""
    by_id: "Counts | None" = None
    """The rows in the order of their ids, once somebody asked."""

    @classmethod
    def of(cls, ids: Counts, vectors: Floats, storage: Storage = "float32") -> "Segment":
        """Vectors ``[N, D]``, as they will be found again: rounded, unless they are stored in float32."""
        if storage == "int8":
            drawn = sketch(vectors)._replace(errors=np.zeros(len(vectors), dtype=np.float32))
            kept: NDArray[Any] = drawn.values
        elif storage == "bfloat16":
            kept = to_bfloat16(vectors)
            drawn = sketch(from_bfloat16(kept))
        else:
            kept, drawn = vectors, sketch(vectors)
        longest = float((drawn.lengths + drawn.errors).max(initial=0.0))
        return cls(ids, kept, drawn, storage, np.ones(len(ids), dtype=np.bool_), longest)

    def __len__(self) -> int:
        return len(self.ids)

    def vectors(self, rows: "Counts | slice") -> Floats:
        """``[n, D]`` in float32."""
        if self.storage == "int8":
            return restore(self.sketch.values[rows], self.sketch.scales[rows])
        part = self.kept[rows]
        return from_bfloat16(part) if self.storage == "bfloat16" else part

    def blocks(self, size: int) -> Iterator[slice]:
        """All rows, so many at a time."""
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def rows(self, ids: Counts) -> Counts:
        """The places of ids, -1 for those that are not here or not alive."""
        if self.by_id is None:
            self.by_id = np.argsort(self.ids, kind="stable")
        rows = self.by_id[np.minimum(np.searchsorted(self.ids, ids, sorter=self.by_id), len(self) - 1)]
        return np.where((self.ids[rows] == ids) & self.alive[rows], rows, -1)

    def living(self) -> "Segment":
        """A copy without what was removed."""
        rows = np.flatnonzero(self.alive)
        return Segment.of(self.ids[rows], self.vectors(rows), self.storage)

    def save(self, folder: Path) -> dict[str, str]:
        """Write the files of a new folder; gives the digest of each."""
        with new_folder(folder) as partial:
            for name, values in self._arrays().items():
                np.save(partial / f"{name}.npy", values, allow_pickle=False)
            digests = {name: digest(partial / f"{name}.npy") for name in self._arrays()}
            write_json(
                partial / ABOUT,
                {"storage": self.storage, "rows": len(self), "longest": self.longest, "digests": digests},
            )
        return digests

    @classmethod
    def load(cls, folder: Path) -> "Segment":
        """A segment whose files are read when they are needed; only their sizes are checked now."""
        about = _about(folder)
        found = {name: open_array(folder / f"{name}.npy") for name in about["digests"]}
        drawn = Sketch(found["sketch"], found["scales"], found["errors"], found["lengths"])
        count = int(about["rows"])
        if any(len(values) != count for values in found.values()):
            raise BrokenIndexError(
                f"{folder} does not have {count} rows in each file: run tercet index repair"
            )
        kept = found.get("vectors", drawn.values)
        alive = np.ones(count, dtype=np.bool_)
        return cls(found["ids"], kept, drawn, about["storage"], alive, float(about["longest"]))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        small: dict[str, NDArray[Any]] = {
            "ids": self.ids,
            "sketch": self.sketch.values,
            "scales": self.sketch.scales,
            "errors": self.sketch.errors,
            "lengths": self.sketch.lengths,
        }
        return small if self.storage == "int8" else small | {"vectors": self.kept}


def damage(folder: Path) -> str:
    """What is wrong with a segment's files, in a few words; nothing if they are as they were written."""
    try:
        about = _about(folder)
        Segment.load(folder)
    except (BrokenIndexError, KeyError, TypeError, ValueError) as error:
        return str(error)
    changed = [name for name, known in about["digests"].items() if digest(folder / f"{name}.npy") != known]
    return f"changed since they were written: {', '.join(changed)}" if changed else ""


def joined_segments(segments: Sequence[Segment], storage: Storage) -> Segment:
    """One segment of what is alive in several."""
    living = [(segment, np.flatnonzero(segment.alive)) for segment in segments]
    ids = np.concatenate([segment.ids[rows] for segment, rows in living])
    return Segment.of(ids, np.concatenate([segment.vectors(rows) for segment, rows in living]), storage)


def _about(folder: Path) -> dict[str, Any]:
    try:
        return read_json(folder / ABOUT)
    except ModelError as error:
        raise BrokenIndexError(f"{error}; run tercet index repair") from None


def digest(file: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def open_array(file: Path) -> NDArray[Any]:
    """The array in a ``.npy`` file, mapped into memory and read-only."""
    try:
        found: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BrokenIndexError(f"{file} is missing or not whole ({error}): run tercet index repair") from None
    return found.view(np.ndarray)


def to_bfloat16(vectors: Floats) -> NDArray[np.uint16]:
    """The nearest bfloat16 of each number, as its 16 bits."""
    bits = vectors.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + ((bits >> SIXTEEN) & np.uint32(1))  # halves go to the even one
    return (nearest >> SIXTEEN).astype(np.uint16)


def from_bfloat16(bits: NDArray[np.uint16]) -> Floats:
    """The numbers that bfloat16's bits stand for."""
    return (bits.astype(np.uint32) << SIXTEEN).view(np.float32)
