"""Nearest neighbours from a database as ``certified_search`` needs them, rounded or found by a graph."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tercet.index.base import NO_ID, Neighbors
from tercet.records import Floats, Ints

Rows: TypeAlias = NDArray[np.float64]
"""``[N, 3]``: the position of a query, from 1, the number of a vector, and their product times -1."""


class SearchedVectors(Protocol):
    """What a database can do with its vectors."""

    @property
    def total(self) -> int:
        """The number of vectors, or a larger number."""

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector, or an upper bound on it."""

    def comparable(self, queries: Floats) -> "tuple[Floats, Floats]":
        """Scales ``[Q]``, and queries ``[Q, D]`` divided by them, in the precision of the database."""

    def nearest(self, vectors: Floats, k: int, selection: Any, *, exact: bool) -> Rows:
        """The ``k`` nearest vectors of each of ``[Q, D]``, all in one request."""

    def vectors(self, numbers: Ints) -> Floats:
        """``[C, D]``: vectors by number."""


def half_precision(queries: Floats) -> "tuple[Floats, Floats]":
    """Scales ``[Q]``, and queries ``[Q, D]`` divided by them and rounded to float16."""
    scales = np.abs(queries).max(axis=1)
    scales[scales == 0] = 1
    return scales, (queries / scales[:, None]).astype(np.float16).astype(np.float32)


class DatabaseVectors:
    """The vectors of a database as ``certified_search`` needs them."""

    def __init__(self, view: SearchedVectors, selection: Any, *, exact: bool) -> None:
        self._view, self._selection = view, selection
        self.exact = exact

    def __len__(self) -> int:
        """The number of vectors, or a larger number; a list that is shorter has all of them."""
        return self._view.total

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector."""
        return self._view.max_norm

    def nearest(self, queries: Floats, k: int) -> Neighbors:
        """The ``k`` nearest neighbours of each query in ``[Q, D]``; products are upper bounds.

        Half precision rounds the queries too. A product is off by at most the norm of the rounding error,
        times that of the longest vector.
        """
        scales, rounded = self._view.comparable(queries)
        errors = np.linalg.norm(rounded.astype(np.float64) * scales[:, None] - queries, axis=1)
        ids = np.full((len(queries), k), NO_ID, dtype=np.int64)
        products = np.full((len(queries), k), -np.inf)
        for exact in (False, True) if not self.exact else (True,):
            short = np.flatnonzero(ids[:, -1] == NO_ID)  # a graph ended early: these are compared with all
            if not len(short):
                break
            rows = self._view.nearest(rounded[short], k, self._selection, exact=exact)
            rows = rows[np.lexsort((rows[:, 2], rows[:, 0]))]
            at = rows[:, 0].astype(np.int64) - 1
            rank = _ranks(at)
            ids[short[at], rank] = rows[:, 1].astype(np.int64)
            products[short[at], rank] = -rows[:, 2] * scales[short[at]]
        self.exact |= bool((ids[:, -1] == NO_ID).any())  # it was compared with all, and there are no more
        bounds = products + (errors * self.max_norm)[:, None]
        return Neighbors(ids, bounds.astype(np.float32))

    def vectors(self, ids: Ints) -> Floats:
        """``[C, D]``: the vectors with these ids."""
        return self._view.vectors(ids)


def _ranks(positions: Ints) -> Ints:
    """The rank of each row within its code; the positions of the codes are sorted."""
    starts = np.flatnonzero(np.diff(positions, prepend=-1))
    return np.arange(len(positions)) - np.repeat(starts, np.diff(starts, append=len(positions)))
