"""Measures of rankings and correlations: pure functions; ties count against the model."""

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


def pearson(left: "ArrayLike", right: "ArrayLike") -> float:
    """r: the correlation of the values; 0 if one side is constant."""
    away = [np.asarray(values, dtype=np.float64) for values in (left, right)]
    away = [values - values.mean() for values in away]
    lengths = [float(np.sqrt(values @ values)) for values in away]
    return float(away[0] @ away[1]) / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def spearman(left: "ArrayLike", right: "ArrayLike") -> float:
    """ρ: the correlation of the ranks, equal values sharing the mean of theirs; 0 if one side is constant."""
    return pearson(*(_ranks(np.asarray(values, dtype=np.float64)) for values in (left, right)))


def accuracy(found: "ArrayLike", labels: "ArrayLike") -> float:
    """The share of labels that were found."""
    return float(np.mean(np.asarray(found) == np.asarray(labels)))


def gains_in_order(scores: "ArrayLike", gains: "ArrayLike") -> "NDArray[np.float64]":
    """The gains of candidates, best score first; among equal scores the least gain is first.

    Args:
        scores: ``[C]``
        gains: ``[C]``, what each candidate is worth; 0 for a wrong one.
    """
    values, worth = np.asarray(scores, dtype=np.float64), np.asarray(gains, dtype=np.float64)
    lost = np.isnan(values)  # takes the place of the best and earns nothing
    worth = np.where(lost, 0.0, worth)
    ordered: NDArray[np.float64] = worth[np.lexsort((worth, -np.where(lost, np.inf, values)))]
    return ordered


def average_precision(ordered: "NDArray[np.float64]", relevant: int) -> float:
    """AP: the mean over the relevant candidates of the precision at their place; 0 for one not found.

    Args:
        ordered: gains in the order of the ranking, perhaps of its beginning only.
        relevant: how many relevant candidates there are in all.
    """
    hits = ordered > 0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / relevant) if relevant else 0.0


def ndcg(ordered: "NDArray[np.float64]", every_gain: "ArrayLike", *, k: int) -> float:
    """nDCG@k: Σ gain / log2(place + 1) over the first ``k``, as a share of the best order's.

    Args:
        ordered: gains in the order of the ranking.
        every_gain: all gains there are, found or not.
    """
    best = np.sort(np.asarray(every_gain, dtype=np.float64))[::-1]
    most = _discounted(best[:k])
    return _discounted(ordered[:k]) / most if most else 0.0


def _discounted(gains: "NDArray[np.float64]") -> float:
    return float(np.sum(gains / np.log2(np.arange(2, len(gains) + 2))))


def rank_shares(values: "ArrayLike") -> "NDArray[np.float64]":
    """``[N]``: the rank of each value, from 0 for the least to 1; equal values share theirs."""
    found = _ranks(np.asarray(values, dtype=np.float64))
    shares: NDArray[np.float64] = (found - 1) / max(len(found) - 1, 1)
    return shares


def _ranks(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """From 1; equal values share the mean of the ranks they take up."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: NDArray[np.float64] = (last - (counts - 1) / 2)[which]
    return mean
