"""What every index of vectors can do; it knows ids and vectors, and no model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from tercet.errors import InputError
from tercet.inputs import check_scale
from tercet.records import Codes, Counts, Floats

Certainty: TypeAlias = Literal["certified", "certified up to the index's recall", "budget reached"]
"""Whether the best that were found are the best there are: proven; proven if the index itself missed nothing;
or not known, because looking on would have cost more than was allowed."""

CERTAINTIES: tuple[Certainty, ...] = get_args(Certainty)
"""The surest first."""

SMALLEST, LARGEST = 1e-12, 1e12
"""What the numbers of a vector may be: squares and products of them stay well within float32."""

NO_ID = -1
"""Where fewer were found than asked for."""


class Neighbours(NamedTuple):
    """The largest inner products of each vector, ``[Q, K]``, largest first."""

    ids: Counts
    products: Floats


@dataclass(frozen=True, slots=True)
class Found:
    """The best candidates of each context.

    ``ids`` and ``scores`` are ``[B, K]``, best first, equal scores by their ids; a row that has fewer ends
    with -1 and -inf. ``scored`` is ``[B]``: how many candidates were scored exactly.
    """

    ids: Counts
    scores: Floats
    certainty: tuple[Certainty, ...]
    scored: Counts


class VectorIndex(ABC):
    """Vectors under ids, found by the codes of a context."""

    width: int
    """D."""

    @abstractmethod
    def __len__(self) -> int:
        """How many vectors there are."""

    @abstractmethod
    def add(self, ids: Counts, vectors: Floats) -> None:
        """Put vectors ``[C, D]`` under new ids ``[C]``."""

    @abstractmethod
    def remove(self, ids: Counts) -> None:
        """Take out vectors that are there."""

    @abstractmethod
    def vectors(self, ids: Counts) -> Floats:
        """``[C, D]``: what is kept under ids."""

    @abstractmethod
    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> Found:
        """The ``k`` best candidates of each context.

        Args:
            scale: how sharply candidates attend to several codes, as in ``match``.
        """

    @abstractmethod
    def save(self, path: Path) -> Path:
        """Write a new folder, without what was removed."""

    @classmethod
    @abstractmethod
    def load(cls, path: Path) -> Self:
        """An index whose vectors are read from the folder when they are needed."""

    def replace(self, ids: Counts, vectors: Floats) -> None:
        """Put other vectors under ids that are there."""
        ids, vectors = self._checked(ids, vectors)
        self.remove(ids)
        self.add(ids, vectors)

    def _checked(self, ids: Counts, vectors: Floats) -> tuple[Counts, Floats]:
        ids = check_ids(ids)
        return ids, check_vectors(vectors, count=len(ids), width=self.width)

    def _check_codes(self, codes: Codes, k: int, scale: float) -> None:
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}")
        if codes.vectors.ndim != 3 or codes.vectors.shape[2] != self.width:
            raise InputError(
                f"codes must be [B, M, {self.width}], as wide as the index, got {list(codes.vectors.shape)}"
            )
        if not codes.mask.any(axis=1).all():
            raise InputError("every context needs at least one code")
        _check_lengths(codes.vectors[codes.mask], "code")
        check_scale("scale", scale)


def check_ids(ids: Counts) -> Counts:
    """Different whole numbers of at least 0."""
    found = np.asarray(ids)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InputError(f"ids must be a list of whole numbers, got {found.dtype} {list(found.shape)}")
    found = found.astype(np.int64)
    if found.size and found.min() < 0:
        raise InputError(f"an id must be at least 0, got {found.min()}")
    values, times = np.unique(found, return_counts=True)
    if len(values) < len(found):
        raise InputError(f"an id may come once, and {values[times > 1][0]} comes {times.max()} times")
    return found


def check_vectors(vectors: Floats, *, count: int, width: int) -> Floats:
    """``[count, width]`` numbers that are finite."""
    found = np.ascontiguousarray(vectors, dtype=np.float32)
    if found.shape != (count, width):
        raise InputError(f"vectors must be [{count}, {width}], one for each id, got {list(found.shape)}")
    _check_lengths(found, "vector")
    return found


def _check_lengths(vectors: Floats, what: str) -> None:
    """Raise unless products of vectors ``[N, D]`` can be computed in float32, and bounds on them."""
    if not np.isfinite(vectors).all():
        place = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"{what} {place} holds a number that is not finite: it cannot be compared")
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    odd = (largest > LARGEST) | ((largest > 0) & (largest < SMALLEST))
    if odd.any():
        place = int(np.flatnonzero(odd)[0])
        raise InputError(
            f"{what} {place} has numbers of about {largest[place]:.0e}, and float32 can compare those from "
            f"{SMALLEST:.0e} to {LARGEST:.0e}: scale all vectors"
        )
