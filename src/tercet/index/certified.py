"""Poly-encoder search over any index of inner products, with a proof.

The score of a candidate, Σ_i softmax(a d)_i d_i, is an average of its products d_i with the codes, so it is
never above the largest of them. Each code asks the index for its best candidates; all of them are scored.
What no code's list has is, for every code, below that list's last product, the cut-off. Once the k-th best
score is above every cut-off, nothing outside can be better: the answer is certified. Until then, the codes
whose cut-offs are too high ask for longer lists.
"""

from typing import Protocol

import numpy as np

from tercet.errors import InputError
from tercet.index.base import Certainty, Found, Neighbours
from tercet.index.scoring import Best, joined, offer, rounding, slack
from tercet.records import Codes, Counts, Floats

FIRST_LISTS = 4
"""How many times ``k`` a code asks for at first."""
DEEPER = 4
"""How many times longer a list gets when it was too short."""


class ProductIndex(Protocol):
    """What can be asked for the largest inner products."""

    exact: bool
    """Whether it finds them all."""

    @property
    def longest(self) -> float:
        """The length of the longest vector that is kept, or more."""

    def __len__(self) -> int: ...

    def nearest(self, queries: Floats, k: int) -> Neighbours:
        """The largest products of each vector of ``[Q, D]``."""

    def vectors(self, ids: Counts) -> Floats:
        """``[C, D]``: what is kept under ids."""


def certified_search(
    index: ProductIndex, codes: Codes, k: int, *, scale: float = 1.0, budget: int | None = None
) -> Found:
    """The ``k`` best candidates of each context.

    Args:
        scale: how sharply candidates attend to codes, as in ``match``.
        budget: after so many scored candidates of one context it is given up to prove the answer; as many as
            there are, by default.
    """
    if budget is not None and budget < k:
        raise InputError(f"a budget of {budget} candidates cannot give the {k} best: allow more")
    found, certainty = [], []
    for vectors, mask in zip(codes.vectors, codes.mask, strict=True):
        best = Best(k)
        certainty.append(_search(index, vectors[mask], best, scale, len(index) if budget is None else budget))
        found.append(best)
    ids, scores = joined(found, k)
    return Found(ids, scores, tuple(certainty), np.array([best.scored for best in found], dtype=np.int64))


def _search(index: ProductIndex, codes: Floats, best: Best, scale: float, budget: int) -> Certainty:
    """Look until the best are proven, or the budget is spent."""
    rounded = 2 * rounding(codes.shape[1]) * index.longest * np.linalg.norm(codes, axis=1)
    off = slack(codes, index.longest, scale)
    cutoffs = np.full(len(codes), np.inf)
    seen = np.empty(0, dtype=np.int64)
    depth = min(max(FIRST_LISTS * best.k, 1), len(index))
    unproven = np.arange(len(codes))
    while len(unproven) and len(seen) < len(index):
        lists = index.nearest(codes[unproven], depth)
        new = np.setdiff1d(lists.ids[lists.ids >= 0], seen)
        offer(best, new, index.vectors(new), codes, scale=scale, off=off)
        seen = np.concatenate([seen, new])
        # a list that has everything has no cut-off; what others rounded counts against them
        cutoffs[unproven] = -np.inf if depth >= len(index) else lists.products[:, -1] + rounded[unproven]
        unproven = np.flatnonzero((cutoffs > -np.inf) & (cutoffs >= best.threshold))
        if len(unproven) and budget <= len(seen) < len(index):
            return "budget reached"
        depth = min(DEEPER * depth, len(index))
    if len(best.ids) < min(best.k, len(index)):  # an index that misses some may miss them all
        return "budget reached"
    return "certified" if index.exact else "certified up to the index's recall"
