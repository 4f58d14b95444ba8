"""The interface of all vector indexes, and the checks that they share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from tercet.errors import InputError
from tercet.inputs import check_k, check_scale
from tercet.records import Certainty, Codes, Floats, Ints

FORMAT = 2
"""Version of the files that indexes without a store write."""

SMALLEST, LARGEST = 1e-12, 1e12
"""Limits of the largest number of a vector, so that squares and products stay well within float32."""

NO_ID = -1
"""Fills rows that have fewer than ``k`` results."""


class Neighbors(NamedTuple):
    """The ids and inner products of the nearest neighbours of each query, ``[Q, K]``, largest first."""

    ids: Ints
    products: Floats


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best candidates of each context.

    ``ids`` and ``scores`` are ``[B, K]``, best first, ties ordered by id; K is at most the size of the index,
    but at least 1. A row with fewer candidates ends with -1 and -inf. ``scored`` is ``[B]``: the number of
    candidates that were scored exactly.
    """

    ids: Ints
    scores: Floats
    certainty: tuple[Certainty, ...]
    scored: Ints


class VectorIndex(ABC):
    """Vectors with ids, searched with the codes of a context."""

    width: int
    """D, the dimension of the vectors."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of vectors."""

    @abstractmethod
    def add(self, ids: Ints, vectors: Floats) -> None:
        """Add vectors ``[C, D]`` with new ids ``[C]``."""

    @abstractmethod
    def remove(self, ids: Ints) -> None:
        """Remove the vectors with these ids, which must exist."""

    @abstractmethod
    def vectors(self, ids: Ints) -> Floats:
        """``[C, D]``: the vectors with these ids."""

    @abstractmethod
    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> SearchResult:
        """The ``k`` best candidates of each context.

        Args:
            scale: multiplies the logits of the candidates' attention over the codes, as in ``match``.
        """

    @abstractmethod
    def save(self, path: Path) -> Path:
        """Write a new folder, without the vectors that were removed."""

    @classmethod
    @abstractmethod
    def load(cls, path: Path) -> Self:
        """The index in a folder, with its vectors memory-mapped."""

    def replace(self, ids: Ints, vectors: Floats) -> None:
        """Replace the vectors with these ids, which must exist."""
        ids, vectors = self._check_input(ids, vectors)
        self.remove(ids)
        self.add(ids, vectors)

    def _check_input(self, ids: Ints, vectors: Floats) -> tuple[Ints, Floats]:
        ids = check_ids(ids)
        return ids, check_vectors(vectors, count=len(ids), width=self.width)

    def _check_query(self, codes: Codes, k: int, scale: float) -> int:
        """``k``, at most the size of the index but at least 1, if codes and scale are valid."""
        check_query(codes, k, scale, width=self.width)
        return min(k, max(len(self), 1))


def check_query(codes: Codes, k: int, scale: float, *, width: int) -> None:
    """Raise unless an index of a width can be searched with these codes, ``k`` and scale."""
    check_k(k)
    if codes.vectors.ndim != 3 or codes.vectors.shape[2] != width:
        raise InputError(
            f"codes must be [B, M, {width}], as wide as the index, got {list(codes.vectors.shape)}"
        )
    if not codes.mask.any(axis=1).all():
        raise InputError("every context needs at least one code, got a mask without any")
    _check_magnitude(codes.vectors[codes.mask], "code")
    check_scale("scale", scale)


def check_ids(ids: Ints) -> Ints:
    """The ids as int64, if they are distinct whole numbers of at least 0."""
    checked = np.asarray(ids)
    if checked.ndim != 1 or (checked.size and checked.dtype.kind not in "iu"):
        raise InputError(f"ids must be a list of whole numbers, got {checked.dtype} {list(checked.shape)}")
    checked = checked.astype(np.int64)
    if checked.size and checked.min() < 0:
        raise InputError(f"an id must be at least 0, got {checked.min()}")
    values, counts = np.unique(checked, return_counts=True)
    if len(values) < len(checked):
        raise InputError(f"ids must be distinct, but {values[counts > 1][0]} appears {counts.max()} times")
    return checked


def check_vectors(vectors: Floats, *, count: int, width: int) -> Floats:
    """The vectors as contiguous float32, if they are ``[count, width]`` and finite."""
    checked = np.ascontiguousarray(vectors, dtype=np.float32)
    if checked.shape != (count, width):
        raise InputError(f"vectors must be [{count}, {width}], one per id, got {list(checked.shape)}")
    _check_magnitude(checked, "vector")
    return checked


def check_format(path: Path, found: object, *, reads: int = FORMAT) -> None:
    """Raise if an index was written in another format than this version reads."""
    if found != reads:
        raise InputError(
            f"{path} has index format {found}, but this version of tercet reads format {reads}: build it "
            'again in a new folder, with "tercet index build"'
        )


def _check_magnitude(vectors: Floats, what: str) -> None:
    """Raise unless float32 can hold the products of vectors ``[N, D]`` and the bounds on them."""
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise InputError(f"{what} {int(np.argmin(finite))} contains NaN or infinity: numbers must be finite")
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    outside = (largest > LARGEST) | ((largest > 0) & (largest < SMALLEST))
    if outside.any():
        position = int(np.argmax(outside))
        raise InputError(
            f"{what} {position} has numbers of about {largest[position]:.0e}, but they must be between "
            f"{SMALLEST:.0e} and {LARGEST:.0e}: rescale all vectors"
        )
