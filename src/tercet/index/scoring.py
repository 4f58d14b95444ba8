"""Scores of codes against vectors in numpy, equal to those of ``tercet.scorers.match``."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tercet.arrays import kth_largest
from tercet.index.base import NO_ID
from tercet.records import Floats, Ints

Real = TypeVar("Real", np.float32, np.float64)


def poly_scores(products: NDArray[Real], scale: float) -> NDArray[Real]:
    """``[C]``: Σ_i softmax(a d)_i d_i, from the products ``[C, M]`` of candidates and codes."""
    if products.shape[1] == 1:
        return products[:, 0]
    weights = np.exp(products.dtype.type(scale) * (products - products.max(axis=1, keepdims=True)))
    scores: NDArray[Real] = np.einsum("cm,cm->c", weights, products) / weights.sum(axis=1)
    return scores


def exact_scores(codes: Floats, vectors: Floats, scale: float) -> Floats:
    """``[C]``: scores computed in float64, so that they do not depend on what is scored in the same call.

    Args:
        codes: ``[M, D]``
        vectors: ``[C, D]``
    """
    products = vectors.astype(np.float64) @ codes.astype(np.float64).T
    return poly_scores(products, scale).astype(np.float32)


def max_score_gap(count: int, scale: float) -> float:
    """How far the score of ``count`` codes can be below their largest product: log M / a."""
    return float(np.log(count)) / scale


def relative_rounding_error(width: int) -> float:
    """Bound on the error of a float32 inner product, relative to the product of the two norms.

    Each of the D multiplications and additions has a relative error of at most 2^-24, in any order.
    """
    return width * 2.0**-23


def score_error(codes: Floats, max_norm: float, scale: float) -> float:
    """Bound on the error of scores that are computed from float32 products with codes ``[M, D]``.

    Args:
        max_norm: norm of the longest vector.
    """
    largest = float(np.linalg.norm(codes, axis=1).max()) * max_norm
    growth = score_growth(len(codes), scale=scale, spread=2 * largest)
    return largest * relative_rounding_error(codes.shape[1]) * growth


def score_growth(count: int, *, scale: float, spread: float) -> float:
    """How far off a score of ``count`` codes can be if each product is off by at most 1.

    The gradient of ``score = Σ_i w_i d_i`` is ``w_i (1 + a (d_i − score))``, whose absolute values sum to at
    most 1 + a (max d − min d). They also sum to at most 1 + 2 log M: ``|d_i − score|`` is at most the sum of
    ``max d − d_i``, whose weighted mean is ``max d − score``, and of ``max d − score``, which is at most
    log M / a.

    Args:
        spread: bound on max d − min d.
    """
    return 1.0 if count == 1 else 1 + min(scale * spread, 2 * float(np.log(count)))


class TopK:
    """The ``k`` best candidates of one context so far; ties are ordered by id."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.scored = 0
        """Number of candidates that were scored."""
        self.ids: Ints = np.empty(0, dtype=np.int64)
        self.scores: Floats = np.empty(0, dtype=np.float32)

    @property
    def threshold(self) -> float:
        """The score of the ``k``-th best candidate; -inf while there are fewer."""
        return float(self.scores[-1]) if len(self.scores) == self.k else -np.inf

    def offer(self, ids: Ints, scores: Floats) -> None:
        """Consider candidates that were not offered before."""
        self.scored += len(ids)
        ids, scores = np.concatenate([self.ids, ids]), np.concatenate([self.scores, scores])
        order = np.lexsort((ids, -scores))[: self.k]
        self.ids, self.scores = ids[order], scores[order]


def offer_vectors(
    top: TopK, ids: Ints, vectors: Floats, codes: Floats, *, scale: float, error: float
) -> None:
    """Score vectors in float32, and those that may be among the best exactly.

    Args:
        vectors: ``[C, D]``
        codes: ``[M, D]``
        error: bound on the error of a float32 score.
    """
    scores = poly_scores(vectors @ codes.T, scale)
    promising = scores >= max(top.threshold, kth_largest(scores, top.k)) - 2 * error
    top.offer(ids[promising], exact_scores(codes, vectors[promising], scale))
    top.scored += len(ids) - int(np.count_nonzero(promising))


def stack(tops: list[TopK], k: int) -> tuple[Ints, Floats]:
    """``[B, K]`` ids and scores; rows with fewer candidates end with -1 and -inf."""
    ids = np.full((len(tops), k), NO_ID, dtype=np.int64)
    scores = np.full((len(tops), k), -np.inf, dtype=np.float32)
    for row, top in enumerate(tops):
        ids[row, : len(top.ids)], scores[row, : len(top.ids)] = top.ids, top.scores
    return ids, scores
