"""Ranking and correlation metrics as pure functions. Ties count against the model."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tercet.records import Floats, Ints


def ranks(scores: "Floats", answers: "ArrayLike") -> "Ints":
    """``[B]``: the rank of each context's answer, from 1; candidates with the same score rank before it.

    A scorer with equal scores for all candidates therefore ranks every answer last.

    Args:
        scores: ``[B, C]``
        answers: ``[B]``, the index of the right candidate.
    """
    right = np.take_along_axis(scores, np.asarray(answers)[:, None], axis=1)  # [B, 1]
    at_least: Ints = np.count_nonzero(~(scores < right), axis=1)  # NaN ranks before the answer too
    return at_least


def recall_at(ranks: "Ints", k: int) -> float:
    """R@k: the share of answers that rank ``k`` or better."""
    return float(np.mean(ranks <= k))


def mean_reciprocal_rank(ranks: "Ints") -> float:
    """MRR: the mean of 1 / rank."""
    return float(np.mean(1 / ranks))


def pearson(left: "ArrayLike", right: "ArrayLike") -> float:
    """Pearson's r, the correlation of the values; 0 if one side is constant."""
    centred = [np.asarray(values, dtype=np.float64) for values in (left, right)]
    centred = [values - values.mean() for values in centred]
    norms = [float(np.sqrt(values @ values)) for values in centred]
    return float(centred[0] @ centred[1]) / (norms[0] * norms[1]) if all(norms) else 0.0


def spearman(left: "ArrayLike", right: "ArrayLike") -> float:
    """Spearman's ρ, the correlation of the ranks; ties share their mean rank. 0 if one side is constant."""
    return pearson(*(_mean_ranks(np.asarray(values, dtype=np.float64)) for values in (left, right)))


def accuracy(predicted: "ArrayLike", labels: "ArrayLike") -> float:
    """The share of predictions that equal the label."""
    return float(np.mean(np.asarray(predicted) == np.asarray(labels)))


def macro_f1(predicted: "ArrayLike", labels: "ArrayLike") -> float:
    """The mean over the classes that occur of F1 = 2 TP / (2 TP + FP + FN)."""
    found, wanted = np.asarray(predicted), np.asarray(labels)
    classes, numbers = np.unique(np.concatenate([found, wanted]), return_inverse=True)
    found, wanted = numbers[: len(found)], numbers[len(found) :]
    count = len(classes)
    hits = np.bincount(wanted[found == wanted], minlength=count)
    both = np.bincount(found, minlength=count) + np.bincount(wanted, minlength=count)  # 2 TP + FP + FN
    return float(np.mean(2 * hits / both))


def best_other_class(values: "Floats", labels: "Ints") -> "Ints":
    """``[N]``: for each row of ``values [N, k]``, the column with the highest value apart from its label."""
    others = values.copy()
    others[np.arange(len(values)), labels] = -np.inf
    best: Ints = others.argmax(axis=1)
    return best


def gains_in_order(scores: "ArrayLike", gains: "ArrayLike") -> "NDArray[np.float64]":
    """``[C]``: the gains of candidates, best score first; among equal scores, the smallest gain first.

    A score that is NaN ranks first and gains nothing.

    Args:
        scores: ``[C]``
        gains: ``[C]``, the relevance of each candidate; 0 is irrelevant.
    """
    values, worth = np.asarray(scores, dtype=np.float64), np.asarray(gains, dtype=np.float64)
    missing = np.isnan(values)
    worth = np.where(missing, 0.0, worth)
    ordered: NDArray[np.float64] = worth[np.lexsort((worth, -np.where(missing, np.inf, values)))]
    return ordered


def average_precision(ordered: "NDArray[np.float64]", relevant: int) -> float:
    """AP: the mean over the relevant candidates of the precision at their rank; 0 for one that is missing.

    Args:
        ordered: gains in the order of the ranking, which may be truncated.
        relevant: the number of relevant candidates, in the ranking or not.
    """
    hits = ordered > 0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / relevant) if relevant else 0.0


def ndcg(ordered: "NDArray[np.float64]", all_gains: "ArrayLike", *, k: int) -> float:
    """nDCG@k: Σ gain / log2(rank + 1) over the first ``k``, divided by that of the ideal order.

    Args:
        ordered: gains in the order of the ranking.
        all_gains: the gains of all candidates, in the ranking or not.
    """
    ideal = np.sort(np.asarray(all_gains, dtype=np.float64))[::-1]
    highest = _discounted(ideal[:k])
    return _discounted(ordered[:k]) / highest if highest else 0.0


def normalized_ranks(values: "ArrayLike") -> "NDArray[np.float64]":
    """``[N]``: the rank of each value, from 0 for the smallest to 1 for the largest; ties share theirs."""
    positions = _mean_ranks(np.asarray(values, dtype=np.float64))
    normalized: NDArray[np.float64] = (positions - 1) / max(len(positions) - 1, 1)
    return normalized


def _discounted(gains: "NDArray[np.float64]") -> float:
    return float(np.sum(gains / np.log2(np.arange(2, len(gains) + 2))))


def _mean_ranks(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Ranks from 1 for the smallest value; ties share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: NDArray[np.float64] = (last - (counts - 1) / 2)[which]
    return mean
