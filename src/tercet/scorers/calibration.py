"""Calibration: scores to probabilities, and the threshold from which a pair counts as a match."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import InputError
from tercet.extras import require
from tercet.inputs import check_choice
from tercet.settings.calibration import METHODS, Method

if TYPE_CHECKING:
    from tercet.records import Bools, Floats


@dataclass(frozen=True, slots=True)
class Platt:
    """``1 / (1 + exp(−(slope · score + intercept)))``: two parameters, so a few dozen pairs are enough."""

    method: ClassVar[Method] = "platt"
    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not np.isfinite([self.slope, self.intercept]).all() or self.slope <= 0:
            raise InputError(f"the curve must rise, got slope {self.slope} and intercept {self.intercept}")

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each score."""
        logits = self.slope * scores + self.intercept
        odds = np.exp(-np.abs(logits))  # never overflows, and distinguishes small probabilities from 0
        probabilities: NDArray[np.float64] = np.where(logits >= 0, 1.0, odds) / (1 + odds)
        return probabilities


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A monotonic line through ``(score, probability)`` points: any shape, but it needs hundreds of pairs."""

    method: ClassVar[Method] = "isotonic"
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.probabilities):
            raise InputError(
                f"scores and probabilities must be equally many, got {len(self.scores)} and "
                f"{len(self.probabilities)}"
            )
        rising = np.diff(self.scores).min(initial=0) >= 0 and np.diff(self.probabilities).min(initial=0) >= 0
        if not rising or min(self.probabilities) < 0 or max(self.probabilities) > 1:
            raise InputError("the curve must rise, and its probabilities must lie between 0 and 1")

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each score; the line is flat beyond its ends."""
        return np.interp(scores, self.scores, self.probabilities)


CURVES: dict[str, type[Platt] | type[Isotonic]] = {"platt": Platt, "isotonic": Isotonic}


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted calibration.

    ``threshold`` is the score with the best F1, ``f1``, on the ``pairs`` pairs it was chosen on. Expect a
    slightly lower F1 on other pairs.
    """

    curve: Platt | Isotonic
    threshold: float
    f1: float
    pairs: int

    def probabilities(self, scores: ArrayLike) -> "Floats":
        """The probability of a match for each score, in float32."""
        return self.curve(np.asarray(scores, dtype=np.float64)).astype(np.float32)

    def matches(self, scores: ArrayLike) -> "Bools":
        """Whether each score reaches the threshold."""
        return np.asarray(scores, dtype=np.float64) >= self.threshold


def fit_calibration(scores: ArrayLike, labels: ArrayLike, method: Method = "platt") -> Calibration:
    """The calibration fitted to scores ``[N]`` of pairs with labels 1 (match) and 0 (no match)."""
    check_choice("method", method, METHODS)
    x, y = _checked(scores, labels)
    threshold, f1 = best_f1(x, y)
    curve = _fit_platt(x, y) if method == "platt" else _fit_isotonic(x, y)
    return Calibration(curve, threshold, f1, len(x))


def best_f1(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """The threshold with the best F1 = 2 TP / (2 TP + FP + FN), and that F1; ties get the same decision."""
    order = np.argsort(-scores, kind="stable")
    values, right = scores[order], np.cumsum(labels[order])
    taken = np.arange(1, len(values) + 1)
    f1 = 2 * right / (taken + right[-1])  # if the first `taken` pairs are predicted as matches
    ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)  # the last of tied scores
    best = int(ends[np.argmax(f1[ends])])
    if best + 1 == len(values):
        return float(values[best]), float(f1[best])
    middle = float(values[best] + values[best + 1]) / 2
    return (middle if middle > values[best + 1] else float(values[best])), float(f1[best])


def check_labels(labels: NDArray[np.float64]) -> None:
    """Raise unless every label is 0 or 1."""
    strange = labels[~np.isin(labels, (0, 1))]
    if strange.size:
        raise InputError(
            f"labels must be 1 (match) or 0 (no match), got {strange[0]:g}: convert grades first "
            "(--match-from)"
        )


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"scores and labels must be lists of equal length, got {x.shape} and {y.shape}")
    if not np.isfinite(x).all():
        raise InputError("a score is NaN or infinite: calibration needs finite scores")
    check_labels(y)
    if len(np.unique(y)) < 2:
        raise InputError(f"calibration needs matches and non-matches, got {len(y)} pairs of one kind")
    if len(np.unique(x)) < 2:
        raise InputError("all pairs have the same score: there is nothing to calibrate")
    if x[y == 1].mean() <= x[y == 0].mean():
        raise InputError(
            "on average, matches score no higher than non-matches: check that 1 marks the matches, "
            "or train the model first"
        )
    return x, y.astype(np.bool_)


def _fit_platt(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Platt:
    """Logistic regression on the smoothed labels of Platt (1999), which keep the slope finite."""
    linear = require("sklearn.linear_model", extra="calibrate", purpose="calibration")
    matches = int(labels.sum())
    targets = np.where(labels, (matches + 1) / (matches + 2), 1 / (len(labels) - matches + 2))
    middle, spread = scores.mean(), scores.std()
    inputs = np.tile((scores - middle) / spread, 2)[
        :, None
    ]  # every pair once as a match and once as a non-match
    kinds = np.repeat([1, 0], len(scores))
    weights = np.concatenate([targets, 1 - targets])
    fitted = linear.LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(inputs, kinds, weights)
    slope = float(fitted.coef_[0, 0]) / spread
    return Platt(float(slope), float(fitted.intercept_[0] - slope * middle))


def _fit_isotonic(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Isotonic:
    isotonic = require("sklearn.isotonic", extra="calibrate", purpose="calibration")
    fitted = isotonic.IsotonicRegression(y_min=0, y_max=1).fit(scores, labels.astype(np.float64))
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))
