"""Jobs over all pairs of vectors, in blocks: memory stays bounded however many there are."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tercet.errors import InputError
from tercet.index.scoring import kth_largest
from tercet.records import Counts, Flags, Floats

ROWS_AT_ONCE, COLUMNS_AT_ONCE = 1024, 4096
KEPT = 2
"""How many times more pairs than wanted are held before the worst of them are dropped."""

Progress = Callable[[int], None]


class Pairs(NamedTuple):
    """``[P]`` pairs, best first: the places of two vectors, the lower first, and their product."""

    first: Counts
    second: Counts
    scores: Floats


def best_pairs(
    vectors: Floats, count: int, *, threshold: float = -np.inf, on_progress: Progress | None = None
) -> Pairs:
    """The ``count`` largest inner products of two different vectors, none below the threshold.

    Args:
        vectors: ``[N, D]``
        on_progress: called with the number of vectors that were compared with all others since the last call.
    """
    if count < 1:
        raise InputError(f"count must be at least 1, got {count}")
    best = Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
    least = threshold
    for rows, columns, products in _upper_blocks(vectors, on_progress):
        if columns.start < rows.stop:  # a pair once, and nothing with itself
            places = np.arange(rows.start, rows.stop)[:, None], np.arange(columns.start, columns.stop)
            products[places[1] <= places[0]] = -np.inf
        cut = least if least > threshold else max(least, kth_largest(products.ravel(), count))
        first, second = np.nonzero((products >= cut) & (products > -np.inf))
        best = Pairs(
            np.concatenate([best.first, first + rows.start]),
            np.concatenate([best.second, second + columns.start]),
            np.concatenate([best.scores, products[first, second]]),
        )
        if len(best.scores) > KEPT * count:
            best = _sorted(best, count)
            least = max(threshold, float(best.scores[-1]))
    return _sorted(best, count)


def communities(
    vectors: Floats, *, threshold: float, smallest: int = 2, on_progress: Progress | None = None
) -> list[Counts]:
    """Groups of vectors around a centre with which each has a product of at least the threshold.

    The vector with the most such neighbours is the first centre; it takes them all. The next is the one that
    had the most of those left. Groups come by their size, each with its centre first.

    Args:
        vectors: ``[N, D]``, of length 1.
        smallest: how many a group must have; the others belong to none.
    """
    if smallest < 1:
        raise InputError(f"smallest must be at least 1, got {smallest}")
    counts = np.zeros(len(vectors), dtype=np.int64)
    for rows, columns, products in _upper_blocks(vectors, on_progress):
        near = products >= threshold
        counts[rows] += np.count_nonzero(near, axis=1)
        if columns.start != rows.start or columns.stop != rows.stop:
            _count_columns(counts, near, rows, columns)
    free = np.ones(len(vectors), dtype=np.bool_)
    groups = []
    for centre in np.lexsort((np.arange(len(counts)), -counts)).tolist():
        if not free[centre] or counts[centre] < smallest:
            continue
        members = np.flatnonzero(free & (vectors @ vectors[centre] >= threshold))
        members = np.concatenate([[centre], members[members != centre]])
        if len(members) >= smallest:
            free[members] = False
            groups.append(members)
    return sorted(groups, key=lambda members: (-len(members), int(members[0])))


def nearest(vectors: Floats, k: int) -> Counts:
    """``[N, k]``: for each vector the places of the ``k`` with the largest inner products, best first.

    Args:
        vectors: ``[N, D]``; each is among its own.
    """
    if not 1 <= k <= len(vectors):
        raise InputError(f"k must be from 1 to {len(vectors)}, the number of vectors, got {k}")
    places = np.empty((len(vectors), k), dtype=np.int64)
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, len(vectors)))
        places[rows] = _nearest(vectors, rows, k)
    return places


def _nearest(vectors: Floats, rows: slice, k: int) -> Counts:
    count = rows.stop - rows.start
    best = np.full((count, k), -np.inf, dtype=np.float32)
    places = np.zeros((count, k), dtype=np.int64)
    for first in range(0, len(vectors), COLUMNS_AT_ONCE):
        products = vectors[rows] @ vectors[first : first + COLUMNS_AT_ONCE].T
        # after the first blocks few rows have anything better, and only those are sorted
        better = np.flatnonzero(products.max(axis=1) > best[:, -1])
        joined = np.hstack([best[better], products[better]])
        numbers = np.broadcast_to(
            np.arange(first, first + products.shape[1]), (len(better), products.shape[1])
        )
        found = np.hstack([places[better], numbers])
        kept = np.argpartition(-joined, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(joined, kept, axis=1), axis=1, kind="stable")
        kept = np.take_along_axis(kept, order, axis=1)
        best[better] = np.take_along_axis(joined, kept, axis=1)
        places[better] = np.take_along_axis(found, kept, axis=1)
    return places


def plane(vectors: Floats) -> Floats:
    """``[N, 2]``: the vectors seen from where they differ the most (the first two principal components)."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # the largest come last
    seen: Floats = centred @ axes[:, :-3:-1]
    return seen


def _upper_blocks(vectors: Floats, on_progress: Progress | None) -> Iterator[tuple[slice, slice, Floats]]:
    """Rows, columns and their products, so that each pair is in one block; those of the diagonal twice."""
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, len(vectors)))
        for first in range(start, len(vectors), COLUMNS_AT_ONCE):
            columns = slice(first, min(first + COLUMNS_AT_ONCE, len(vectors)))
            yield rows, columns, vectors[rows] @ vectors[columns].T
        if on_progress is not None:
            on_progress(rows.stop - rows.start)


def _count_columns(counts: Counts, near: Flags, rows: slice, columns: slice) -> None:
    """Count a block's pairs for the later of the two, but for those whose rows it holds too."""
    own = max(rows.stop - columns.start, 0)
    counts[columns.start + own : columns.stop] += np.count_nonzero(near[:, own:], axis=0)


def _sorted(pairs: Pairs, count: int) -> Pairs:
    order = np.lexsort((pairs.second, pairs.first, -pairs.scores))[:count]
    return Pairs(pairs.first[order], pairs.second[order], pairs.scores[order])
