"""Measures of decisions, whether a pair is a match: pure functions of scores and labels."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.calibration import best_f1
from tercet.evaluate.metrics import average_precision, gains_in_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BINS = 10


def f1_at_best(scores: "ArrayLike", labels: "ArrayLike") -> float:
    """F1 at the threshold where it is best; equal scores are decided alike."""
    return best_f1(*_arrays(scores, labels))[1]


def accuracy_at_best(scores: "ArrayLike", labels: "ArrayLike") -> float:
    """Accuracy at the threshold where it is best; equal scores are decided alike."""
    values, matches = _arrays(scores, labels)
    order = np.argsort(-values, kind="stable")
    values, matches = values[order], matches[order]
    right = np.cumsum(matches) + np.count_nonzero(~matches) - np.cumsum(~matches)  # after each is let in
    cuts = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)  # the last of equal scores
    none = np.count_nonzero(~matches)
    return float(max(right[cuts].max(), none) / len(values))


def precision_over_recall(scores: "ArrayLike", labels: "ArrayLike") -> float:
    """Average precision of all pairs in the order of their scores."""
    values, matches = _arrays(scores, labels)
    return average_precision(gains_in_order(values, matches), int(matches.sum()))


def calibration_error(probabilities: "ArrayLike", labels: "ArrayLike", *, bins: int = BINS) -> float:
    """ECE: how far probability and share of matches lie apart, the mean over bins of equal width."""
    told, happened, counts = reliability(probabilities, labels, bins=bins)
    return float(np.abs(told - happened) @ counts / counts.sum())


def reliability(
    probabilities: "ArrayLike", labels: "ArrayLike", *, bins: int = BINS
) -> "tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]":
    """Of each bin that is not empty: the mean probability, the share of matches, and how many pairs."""
    values, matches = _arrays(probabilities, labels)
    places = np.clip((values * bins).astype(np.int64), 0, bins - 1)
    counts = np.bincount(places, minlength=bins).astype(np.float64)
    told, happened = (np.bincount(places, weights=each, minlength=bins) for each in (values, matches))
    kept = counts > 0
    return told[kept] / counts[kept], happened[kept] / counts[kept], counts[kept]


def _arrays(scores: "ArrayLike", labels: "ArrayLike") -> "tuple[NDArray[np.float64], NDArray[np.bool_]]":
    return np.asarray(scores, dtype=np.float64), np.asarray(labels).astype(bool)
