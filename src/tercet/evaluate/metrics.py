"""Measures of rankings: pure functions of scores; ties count against the model."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tercet.records import Counts, Floats


def places(scores: "Floats", answers: "ArrayLike") -> "Counts":
    """``[B]``: the place of each context's answer, from 1; every candidate that scores as much is before it.

    A scorer that gives all candidates the same score thus puts every answer last.

    Args:
        scores: ``[B, C]``
        answers: ``[B]``, the position of the right candidate.
    """
    right = np.take_along_axis(scores, np.asarray(answers)[:, None], axis=1)  # [B, 1]
    ahead: Counts = np.count_nonzero(~(scores < right), axis=1)  # a NaN is ahead too
    return ahead


def recall_at(places: "Counts", k: int) -> float:
    """R@k: the share of answers among the first ``k``."""
    return float(np.mean(places <= k))
