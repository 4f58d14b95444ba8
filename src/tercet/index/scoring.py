"""Scores of codes against vectors as ``models.match`` has them, in numpy, and a running best of them."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tercet.index.base import NO_ID
from tercet.records import Counts, Floats

Real = TypeVar("Real", np.float32, np.float64)


def poly_scores(products: NDArray[Real], scale: float) -> NDArray[Real]:
    """``[C]`` from the products of candidates and codes, ``[C, M]``: Σ_i softmax(a d)_i d_i."""
    if products.shape[1] == 1:
        return products[:, 0]
    weights = np.exp(products.dtype.type(scale) * (products - products.max(axis=1, keepdims=True)))
    scores: NDArray[Real] = np.einsum("cm,cm->c", weights, products) / weights.sum(axis=1)
    return scores


def exact_scores(codes: Floats, vectors: Floats, scale: float) -> Floats:
    """``[C]``: computed in float64, so that they do not depend on what is scored beside them.

    Args:
        codes: ``[M, D]``
        vectors: ``[C, D]``
    """
    products = vectors.astype(np.float64) @ codes.astype(np.float64).T
    return poly_scores(products, scale).astype(np.float32)


def widest_gap(count: int, scale: float) -> float:
    """By how much the score of ``count`` codes can be below their largest product: log M / a."""
    return float(np.log(count)) / scale


def rounding(width: int) -> float:
    """How far a float32 product may be from the exact one, as a share of the two lengths multiplied.

    Each of the D multiplications and additions is off by 2^-24 at the most, in whatever order they are done.
    """
    return width * 2.0**-23


def slack(codes: Floats, longest: float, scale: float) -> float:
    """How far scores from float32 products with codes ``[M, D]`` may be off.

    Products that are off by e each put ``Σ_i w_i d_i`` off by at most e (1 + a (max d − min d)), by its
    gradient ``w_i (1 + a (d_i − score))``.

    Args:
        longest: the length of the longest vector.
    """
    largest = float(np.linalg.norm(codes, axis=1).max()) * longest
    spread = 0.0 if len(codes) == 1 else 2 * largest
    return largest * rounding(codes.shape[1]) * (1 + scale * spread)


class Best:
    """The ``k`` best of what was offered so far; equal scores go by their ids."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.scored = 0
        self.ids = np.empty(0, dtype=np.int64)
        self.scores = np.empty(0, dtype=np.float32)

    @property
    def threshold(self) -> float:
        """What a candidate must reach to be among the best."""
        return float(self.scores[-1]) if len(self.scores) == self.k else -np.inf

    def offer(self, ids: Counts, scores: Floats) -> None:
        """Look at candidates that were not offered before."""
        self.scored += len(ids)
        ids, scores = np.concatenate([self.ids, ids]), np.concatenate([self.scores, scores])
        order = np.lexsort((ids, -scores))[: self.k]
        self.ids, self.scores = ids[order], scores[order]


def offer(best: Best, ids: Counts, vectors: Floats, codes: Floats, *, scale: float, off: float) -> None:
    """Score candidates, and those that can be among the best exactly.

    Args:
        vectors: ``[C, D]``
        codes: ``[M, D]``
        off: how far a float32 score may be from the exact one.
    """
    scores = poly_scores(vectors @ codes.T, scale)
    near = scores >= max(best.threshold, kth_largest(scores, best.k)) - 2 * off
    best.offer(ids[near], exact_scores(codes, vectors[near], scale))
    best.scored += len(ids) - int(np.count_nonzero(near))


def joined(found: list[Best], k: int) -> tuple[Counts, Floats]:
    """``[B, K]`` ids and scores, filled up where there are fewer."""
    ids = np.full((len(found), k), NO_ID, dtype=np.int64)
    scores = np.full((len(found), k), -np.inf, dtype=np.float32)
    for row, best in enumerate(found):
        ids[row, : len(best.ids)], scores[row, : len(best.ids)] = best.ids, best.scores
    return ids, scores


def kth_largest(values: Floats, k: int) -> float:
    """The ``k``-th largest, or -inf if there are fewer."""
    if len(values) < k:
        return -np.inf
    return float(np.partition(values, len(values) - k)[len(values) - k])
