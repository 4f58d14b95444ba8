"""Poly-encoder search over any inner-product index, with a certificate that no better candidate exists.

The score of a candidate, Σ_i softmax(a d)_i d_i, is a weighted mean of its products d_i with the codes, so it
never exceeds the largest of them. The search retrieves the nearest neighbours of each code and scores all of
them. A candidate in none of these lists has, for every code, at most the product of the last neighbour in the
list: the cut-off. Once the k-th best score exceeds every cut-off, no other candidate can be better, and the
result is certified. Until then, the codes with too high a cut-off retrieve longer lists.
"""

from typing import Protocol

import numpy as np

from tercet.errors import InputError
from tercet.index.base import Neighbors, SearchResult
from tercet.index.scoring import TopK, offer_vectors, relative_rounding_error, score_error, stack
from tercet.records import Certainty, Codes, Floats, Ints

FIRST_DEPTH = 4
"""Length of the first lists, as a multiple of ``k``."""
GROWTH = 4
"""Factor by which too short a list grows."""


class ProductIndex(Protocol):
    """An index that finds the largest inner products."""

    exact: bool
    """Whether it finds all of them."""

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector, or an upper bound on it."""

    def __len__(self) -> int:
        """The number of vectors. A larger number is allowed if lists that are too short have all vectors."""

    def nearest(self, queries: Floats, k: int) -> Neighbors:
        """The ``k`` nearest neighbours of each query in ``[Q, D]``, by inner product.

        The products may be upper bounds, by which no neighbour outside of a list is above its last one.
        """

    def vectors(self, ids: Ints) -> Floats:
        """``[C, D]``: the vectors with these ids."""


def certified_search(
    index: ProductIndex, codes: Codes, k: int, *, scale: float = 1.0, budget: int | None = None
) -> SearchResult:
    """The ``k`` best candidates of each context.

    Args:
        scale: multiplies the logits of the candidates' attention over the codes, as in ``match``.
        budget: the search for a proof stops once this many candidates of a context are scored. Default: the
            size of the index.
    """
    if budget is not None and budget < k:
        raise InputError(f"budget must be at least k = {k}, got {budget}")
    k = min(k, max(len(index), 1))
    tops, certainty = [], []
    for vectors, mask in zip(codes.vectors, codes.mask, strict=True):
        top = TopK(k)
        certainty.append(_search(index, vectors[mask], top, scale, len(index) if budget is None else budget))
        tops.append(top)
    ids, scores = stack(tops, k)
    return SearchResult(ids, scores, tuple(certainty), np.array([top.scored for top in tops], dtype=np.int64))


def _search(index: ProductIndex, codes: Floats, top: TopK, scale: float, budget: int) -> Certainty:
    """Fill ``top`` until the result is proven or the budget is spent."""
    norms = np.linalg.norm(codes, axis=1)
    rounding = 2 * relative_rounding_error(codes.shape[1]) * index.max_norm * norms
    error = score_error(codes, index.max_norm, scale)
    cutoffs = np.full(len(codes), np.inf)
    seen = np.empty(0, dtype=np.int64)
    depth = min(FIRST_DEPTH * top.k, len(index))
    unproven = np.arange(len(codes))
    while len(unproven) and len(seen) < len(index):
        lists = index.nearest(codes[unproven], depth)
        new = np.setdiff1d(lists.ids[lists.ids >= 0], seen)
        offer_vectors(top, new, index.vectors(new), codes, scale=scale, error=error)
        seen = np.concatenate([seen, new])
        # a list of all vectors has no cut-off; the index may have rounded its products
        cutoffs[unproven] = -np.inf if depth >= len(index) else lists.products[:, -1] + rounding[unproven]
        unproven = np.flatnonzero((cutoffs > -np.inf) & (cutoffs >= top.threshold))
        if len(unproven) and budget <= len(seen) < len(index):
            return Certainty.BUDGET_REACHED
        depth = min(GROWTH * depth, len(index))
    if index.exact:
        return Certainty.CERTIFIED
    if len(top.ids) < min(top.k, len(index)):  # an approximate index can miss any number of vectors
        return Certainty.BUDGET_REACHED
    return Certainty.CERTIFIED_UP_TO_RECALL
