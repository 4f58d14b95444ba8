"""Measures of rankings: pure functions of scores; ties count against the model."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

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


def mean_reciprocal_rank(places: "Counts") -> float:
    """MRR: the mean of one over the place of the answer."""
    return float(np.mean(1 / places))


def spearman(left: "ArrayLike", right: "ArrayLike") -> float:
    """ρ: the correlation of the ranks, equal values sharing the mean of theirs; 0 if one side is constant."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (left, right)]
    away = [values - values.mean() for values in ranks]
    lengths = [float(np.sqrt(values @ values)) for values in away]
    return float(away[0] @ away[1]) / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def accuracy(found: "ArrayLike", labels: "ArrayLike") -> float:
    """The share of labels that were found."""
    return float(np.mean(np.asarray(found) == np.asarray(labels)))


def _ranks(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """From 1; equal values share the mean of the ranks they take up."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: NDArray[np.float64] = (last - (counts - 1) / 2)[which]
    return mean
