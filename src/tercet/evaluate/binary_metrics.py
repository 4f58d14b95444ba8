"""Metrics of binary classification, whether a pair is a match, as pure functions of scores and labels."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tercet.evaluate.metrics import average_precision, gains_in_order
from tercet.scorers.calibration import best_f1

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BINS = 10


class Reliability(NamedTuple):
    """Per non-empty bin: the mean probability, the share of matches, and the number of pairs."""

    probability: "NDArray[np.float64]"
    match_share: "NDArray[np.float64]"
    pairs: "NDArray[np.float64]"


def f1_at_best_threshold(scores: "ArrayLike", labels: "ArrayLike") -> float:
    """F1 at the threshold that maximizes it; equal scores get the same decision."""
    return best_f1(*_arrays(scores, labels))[1]


def accuracy_at_best_threshold(scores: "ArrayLike", labels: "ArrayLike") -> float:
    """Accuracy at the threshold that maximizes it; equal scores get the same decision."""
    values, matches = _arrays(scores, labels)
    order = np.argsort(-values, kind="stable")
    values, matches = values[order], matches[order]
    negatives = np.count_nonzero(~matches)
    right = np.cumsum(matches) + negatives - np.cumsum(~matches)  # if the first n pairs are predicted matches
    ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)  # the last of equal scores
    return float(max(right[ends].max(), negatives) / len(values))


def binary_average_precision(scores: "ArrayLike", labels: "ArrayLike") -> float:
    """Average precision of all pairs in the order of their scores."""
    values, matches = _arrays(scores, labels)
    return average_precision(gains_in_order(values, matches), int(matches.sum()))


def expected_calibration_error(probabilities: "ArrayLike", labels: "ArrayLike", *, bins: int = BINS) -> float:
    """ECE: the mean distance of probability and share of matches, over bins of equal width."""
    found = reliability(probabilities, labels, bins=bins)
    return float(np.abs(found.probability - found.match_share) @ found.pairs / found.pairs.sum())


def brier_score(probabilities: "ArrayLike", labels: "ArrayLike") -> float:
    """The mean of ``(p − y)²``."""
    values, matches = _arrays(probabilities, labels)
    return float(np.mean((values - matches) ** 2))


def log_loss(probabilities: "ArrayLike", labels: "ArrayLike") -> float:
    """The mean of ``−ln p`` of the true labels; probabilities are limited to 10⁻⁷ to 1 − 10⁻⁷."""
    values, matches = _arrays(probabilities, labels)
    limited = np.clip(values, 1e-7, 1 - 1e-7)
    return float(-np.mean(np.where(matches, np.log(limited), np.log(1 - limited))))


def reliability(probabilities: "ArrayLike", labels: "ArrayLike", *, bins: int = BINS) -> Reliability:
    """The reliability diagram of probabilities: how often matches occur at each level of probability."""
    values, matches = _arrays(probabilities, labels)
    positions = np.clip((values * bins).astype(np.int64), 0, bins - 1)
    counts = np.bincount(positions, minlength=bins).astype(np.float64)
    probability, matched = (
        np.bincount(positions, weights=each, minlength=bins) for each in (values, matches)
    )
    kept = counts > 0
    return Reliability(probability[kept] / counts[kept], matched[kept] / counts[kept], counts[kept])


def _arrays(scores: "ArrayLike", labels: "ArrayLike") -> "tuple[NDArray[np.float64], NDArray[np.bool_]]":
    return np.asarray(scores, dtype=np.float64), np.asarray(labels).astype(bool)
