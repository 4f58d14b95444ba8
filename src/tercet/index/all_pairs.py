"""Computations over all pairs of vectors. They run in blocks, so memory stays bounded."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tercet.arrays import BlockTopK, kth_largest
from tercet.errors import InputError
from tercet.inputs import check_count, check_threshold
from tercet.records import Bools, Floats, Ints, Progress

ROWS_PER_BLOCK, COLUMNS_PER_BLOCK = 1024, 4096
MAX_PAIRS = 10_000_000
"""Pairs that fit in memory: 20 bytes each, and three times that while they are sorted."""

BUFFER = 2
"""Pairs that are collected before the worst are dropped, as a multiple of the wanted number."""


class Pairs(NamedTuple):
    """``[P]`` pairs, best first: the positions of two vectors, the lower one first, and their product."""

    first: Ints
    second: Ints
    scores: Floats


_NO_PAIRS = Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


def top_pairs(
    vectors: Floats, count: int, *, threshold: float = -np.inf, on_progress: Progress | None = None
) -> Pairs:
    """The ``count`` pairs of distinct vectors with the largest inner products, none below the threshold.

    Args:
        vectors: ``[N, D]``
        on_progress: called with the number of vectors that were compared since the last call.
    """
    check_count("count", count)
    check_threshold(threshold)
    top = _NO_PAIRS
    lowest = threshold
    for rows, columns, products in _distinct_pairs(vectors, on_progress):
        bound = lowest if lowest > threshold else max(lowest, kth_largest(products.ravel(), count))
        top = _joined([top, _at_least(bound, rows, columns, products)])
        if len(top.scores) > BUFFER * count:
            top = _sorted(top, count)
            lowest = max(threshold, float(top.scores[-1]))
    return _sorted(top, count)


def pairs_above(vectors: Floats, threshold: float, *, on_progress: Progress | None = None) -> Pairs:
    """All pairs of distinct vectors whose inner product is at least the threshold.

    Args:
        vectors: ``[N, D]``
        on_progress: called with the number of vectors that were compared since the last call.
    """
    check_threshold(threshold)
    found, count = [_NO_PAIRS], 0
    for rows, columns, products in _distinct_pairs(vectors, on_progress):
        found.append(_at_least(threshold, rows, columns, products))
        count += len(found[-1].scores)
        if count > MAX_PAIRS:
            raise InputError(
                f"more than {MAX_PAIRS:,} pairs have a score of at least {threshold:g}: raise the threshold, "
                "or give a count"
            )
    return _sorted(_joined(found), count)


def communities(
    vectors: Floats, *, threshold: float, min_size: int = 2, on_progress: Progress | None = None
) -> list[Ints]:
    """Groups of vectors, largest first; each starts with its centre.

    Every member has a product of at least the threshold with the centre. The vector with the most such
    neighbours becomes the first centre and takes all of them. Then the vector with the next most neighbours
    that is still free takes those that are free, and so on.

    Args:
        vectors: ``[N, D]``, of norm 1.
        min_size: smaller groups are dropped.
    """
    check_count("min_size", min_size)
    check_threshold(threshold)
    counts = _neighbour_counts(vectors, threshold, on_progress)
    free = np.ones(len(vectors), dtype=np.bool_)
    groups = []
    for centre in np.lexsort((np.arange(len(counts)), -counts)).tolist():
        if not free[centre] or counts[centre] < min_size:
            continue
        members = np.flatnonzero(free & (vectors @ vectors[centre] >= threshold))
        members = np.concatenate([[centre], members[members != centre]])
        if len(members) >= min_size:
            free[members] = False
            groups.append(members)
    return sorted(groups, key=lambda members: (-len(members), int(members[0])))


def nearest(vectors: Floats, k: int) -> Ints:
    """``[N, k]``: the positions of the ``k`` nearest neighbours of each vector, by inner product.

    Args:
        vectors: ``[N, D]``; a vector counts as its own neighbour.
    """
    if not 1 <= k <= len(vectors):
        raise InputError(f"k must be between 1 and the number of vectors, {len(vectors)}, got {k}")
    positions = np.empty((len(vectors), k), dtype=np.int64)
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        rows = vectors[start : start + ROWS_PER_BLOCK]
        top = BlockTopK(len(rows), k)
        for first in range(0, len(vectors), COLUMNS_PER_BLOCK):
            top.offer(rows @ vectors[first : first + COLUMNS_PER_BLOCK].T, first=first)
        positions[start : start + len(rows)] = top.columns
    return positions


def plane(vectors: Floats) -> Floats:
    """``[N, 2]``: the vectors projected onto their first two principal components."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # in ascending order
    projected: Floats = centred @ axes[:, :-3:-1]
    return projected


def _upper_blocks(vectors: Floats, on_progress: Progress | None) -> Iterator[tuple[slice, slice, Floats]]:
    """Rows, columns and their products. Blocks on the diagonal contain each of their pairs twice."""
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        rows = slice(start, min(start + ROWS_PER_BLOCK, len(vectors)))
        for first in range(start, len(vectors), COLUMNS_PER_BLOCK):
            columns = slice(first, min(first + COLUMNS_PER_BLOCK, len(vectors)))
            yield rows, columns, vectors[rows] @ vectors[columns].T
        if on_progress is not None:
            on_progress(rows.stop - rows.start)


def _distinct_pairs(vectors: Floats, on_progress: Progress | None) -> Iterator[tuple[slice, slice, Floats]]:
    """As ``_upper_blocks``, with each pair once: the other product of two vectors, and of one, is -inf."""
    for rows, columns, products in _upper_blocks(vectors, on_progress):
        if columns.start < rows.stop:
            firsts = np.arange(rows.start, rows.stop)[:, None]
            products[np.arange(columns.start, columns.stop) <= firsts] = -np.inf
        yield rows, columns, products


def _at_least(bound: float, rows: slice, columns: slice, products: Floats) -> Pairs:
    """The pairs of a block with a product of at least ``bound``."""
    first, second = np.nonzero((products >= bound) & (products > -np.inf))
    return Pairs(first + rows.start, second + columns.start, products[first, second])


def _joined(parts: list[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _neighbour_counts(vectors: Floats, threshold: float, on_progress: Progress | None) -> Ints:
    """``[N]``: how many vectors, itself included, have a product of at least the threshold with each."""
    counts = np.zeros(len(vectors), dtype=np.int64)
    for rows, columns, products in _upper_blocks(vectors, on_progress):
        near = products >= threshold
        counts[rows] += np.count_nonzero(near, axis=1)
        if columns.start != rows.start or columns.stop != rows.stop:
            _count_columns(counts, near, rows, columns)
    return counts


def _count_columns(counts: Ints, near: Bools, rows: slice, columns: slice) -> None:
    """Count the pairs of a block for their columns, except columns that are rows of the same block."""
    shared = max(rows.stop - columns.start, 0)
    counts[columns.start + shared : columns.stop] += np.count_nonzero(near[:, shared:], axis=0)


def _sorted(pairs: Pairs, count: int) -> Pairs:
    order = np.lexsort((pairs.second, pairs.first, -pairs.scores))[:count]
    return Pairs(pairs.first[order], pairs.second[order], pairs.scores[order])
