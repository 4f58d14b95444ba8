"""Top-k selection and unit vectors, in numpy."""

import numpy as np

from tercet.records import Floats, Ints

EPSILON = 1e-12
"""Shorter vectors are divided by this instead of their norm, so zeros stay zeros."""


def top_k(scores: Floats, k: int) -> Ints:
    """Indices of the ``k`` largest of ``[N]`` scores, largest first; ties keep their order."""
    if k >= len(scores):
        return np.argsort(-scores, kind="stable")
    among = np.flatnonzero(scores >= kth_largest(scores, k))
    return among[np.argsort(-scores[among], kind="stable")[:k]]


def kth_largest(values: Floats, k: int) -> float:
    """The ``k``-th largest value, or -inf if there are fewer."""
    if len(values) < k:
        return -np.inf
    return float(np.partition(values, len(values) - k)[len(values) - k])


def unit_vectors(vectors: Floats) -> Floats:
    """``[..., D]``: the vectors divided by their norms; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Floats = vectors / np.maximum(norms, EPSILON)
    return unit


class BlockTopK:
    """The ``k`` largest scores of each row, whose columns arrive in blocks; ties keep their order."""

    def __init__(self, rows: int, k: int) -> None:
        self.scores: Floats = np.full((rows, k), -np.inf, dtype=np.float32)
        self.columns: Ints = np.full((rows, k), -1, dtype=np.int64)

    def offer(self, block: Floats, *, first: int) -> None:
        """Consider a block ``[rows, n]`` whose columns are numbered from ``first``."""
        k = self.scores.shape[1]
        # after the first blocks few rows improve, and only those are sorted again
        rows = np.flatnonzero(block.max(axis=1) > self.scores[:, -1])
        numbers = np.broadcast_to(np.arange(first, first + block.shape[1]), (len(rows), block.shape[1]))
        scores = np.hstack([self.scores[rows], block[rows]])
        columns = np.hstack([self.columns[rows], numbers])
        kept = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        # of the scores equal to the k-th, argpartition keeps any: such rows are sorted as a whole
        kth = np.take_along_axis(scores, kept, axis=1).min(axis=1, keepdims=True)
        tied = np.flatnonzero(np.count_nonzero(scores >= kth, axis=1) > k)
        kept[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :k]
        kept = np.sort(kept, axis=1)
        order = np.argsort(-np.take_along_axis(scores, kept, axis=1), axis=1, kind="stable")
        kept = np.take_along_axis(kept, order, axis=1)
        self.scores[rows] = np.take_along_axis(scores, kept, axis=1)
        self.columns[rows] = np.take_along_axis(columns, kept, axis=1)
