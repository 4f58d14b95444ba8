"""Scores to probabilities, and the score from which a pair counts as a match."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import InputError, ModelError
from tercet.extras import require
from tercet.files import read_json, write_json
from tercet.inputs import check_choice

if TYPE_CHECKING:
    from tercet.records import Flags, Floats

Method: TypeAlias = Literal["platt", "isotonic"]
METHODS: tuple[Method, ...] = get_args(Method)

NAME = "calibration.json"


@dataclass(frozen=True, slots=True)
class Platt:
    """``1 / (1 + exp(−(slope · score + intercept)))``: two numbers, so a few dozen pairs are enough."""

    method: ClassVar[Method] = "platt"
    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not np.isfinite([self.slope, self.intercept]).all() or self.slope <= 0:
            raise InputError(f"a curve must rise, got slope {self.slope} and intercept {self.intercept}")

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each score."""
        logits = self.slope * scores + self.intercept
        odds = np.exp(-np.abs(logits))  # never overflows, and keeps small probabilities apart from 0
        probabilities: NDArray[np.float64] = np.where(logits >= 0, 1.0, odds) / (1 + odds)
        return probabilities


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A rising line through ``(score, probability)`` points: any shape, but it wants hundreds of pairs."""

    method: ClassVar[Method] = "isotonic"
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.probabilities):
            raise InputError(
                f"{len(self.scores)} scores need as many probabilities, got {len(self.probabilities)}"
            )
        rising = np.diff(self.scores).min(initial=0) >= 0 and np.diff(self.probabilities).min(initial=0) >= 0
        if not rising or min(self.probabilities) < 0 or max(self.probabilities) > 1:
            raise InputError("a curve must rise, and its probabilities lie between 0 and 1")

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each score; beyond the ends the line is flat."""
        return np.interp(scores, self.scores, self.probabilities)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What labelled pairs teach about a scorer's scores.

    ``threshold`` is the score that parts matches from others with the best F1, ``f1``, on the ``pairs`` pairs
    it was chosen on; on other pairs expect a little less.
    """

    curve: Platt | Isotonic
    threshold: float
    f1: float
    pairs: int

    def probabilities(self, scores: ArrayLike) -> "Floats":
        """The probability that each score is a match's, in float32."""
        return self.curve(np.asarray(scores, dtype=np.float64)).astype(np.float32)

    def matches(self, scores: ArrayLike) -> "Flags":
        """Whether each score reaches the threshold."""
        return np.asarray(scores, dtype=np.float64) >= self.threshold


def fit_calibration(scores: ArrayLike, labels: ArrayLike, method: Method = "platt") -> Calibration:
    """The calibration that fits scores ``[N]`` whose pairs are matches (1) or not (0)."""
    check_choice("method", method, METHODS)
    x, y = _checked(scores, labels)
    threshold, f1 = best_f1(x, y)
    curve = _fit_platt(x, y) if method == "platt" else _fit_isotonic(x, y)
    return Calibration(curve, threshold, f1, len(x))


def best_f1(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """The threshold with the best F1 = 2 TP / (2 TP + FP + FN), and that F1; equal scores stay together."""
    order = np.argsort(-scores, kind="stable")
    values, right = scores[order], np.cumsum(labels[order])
    taken = np.arange(1, len(values) + 1)
    f1 = 2 * right / (taken + right[-1])  # if the first `taken` pairs are called matches
    cuts = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)  # the last of equal scores
    best = int(cuts[np.argmax(f1[cuts])])
    if best + 1 == len(values):
        return float(values[best]), float(f1[best])
    middle = float(values[best] + values[best + 1]) / 2
    return (middle if middle > values[best + 1] else float(values[best])), float(f1[best])


def read_calibration(folder: Path) -> Calibration | None:
    """The calibration saved in a model folder, if there is one."""
    file = folder / NAME
    if not file.is_file():
        return None
    content: dict[str, Any] = read_json(file)
    try:
        check_choice("method", content["method"], METHODS)
        curve: Platt | Isotonic
        if content["method"] == "platt":
            curve = Platt(float(content["slope"]), float(content["intercept"]))
        else:
            points = [tuple(map(float, content[name])) for name in ("scores", "probabilities")]
            curve = Isotonic(*points)
        return Calibration(curve, float(content["threshold"]), float(content["f1"]), int(content["pairs"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{file} is broken ({error}): calibrate the model again") from error


def write_calibration(calibration: Calibration | None, folder: Path) -> None:
    """Write what ``read_calibration`` reads; nothing where there is no calibration."""
    if calibration is None:
        return
    content = asdict(calibration)
    write_json(folder / NAME, {"method": calibration.curve.method, **content.pop("curve"), **content})


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"scores and labels must be two lists of one length, got {x.shape} and {y.shape}")
    if not np.isfinite(x).all():
        raise InputError("a score is NaN or infinite: a calibration needs numbers")
    if not np.isin(y, (0, 1)).all():
        strange = y[~np.isin(y, (0, 1))][0]
        raise InputError(f"labels must be 1 (a match) or 0 (none), got {strange:g}: turn grades into them")
    if len(np.unique(y)) < 2:
        raise InputError(f"a calibration needs matches and others, got {len(y)} pairs of one kind")
    if len(np.unique(x)) < 2:
        raise InputError("every pair has the same score: there is nothing to calibrate")
    if x[y == 1].mean() <= x[y == 0].mean():
        raise InputError(
            "matches score no higher than others on average: check that 1 marks the matches, "
            "or train the model first"
        )
    return x, y.astype(np.bool_)


def _fit_platt(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Platt:
    """Logistic regression on Platt's (1999) softened labels, which keep the slope finite."""
    linear = require("sklearn.linear_model", extra="calibrate", purpose="calibration")
    matches = int(labels.sum())
    targets = np.where(labels, (matches + 1) / (matches + 2), 1 / (len(labels) - matches + 2))
    middle, spread = scores.mean(), scores.std()
    inputs = np.tile((scores - middle) / spread, 2)[:, None]  # every pair once as a match, once as none
    kinds = np.repeat([1, 0], len(scores))
    weights = np.concatenate([targets, 1 - targets])
    fitted = linear.LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(inputs, kinds, weights)
    slope = float(fitted.coef_[0, 0]) / spread
    return Platt(float(slope), float(fitted.intercept_[0] - slope * middle))


def _fit_isotonic(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Isotonic:
    isotonic = require("sklearn.isotonic", extra="calibrate", purpose="calibration")
    fitted = isotonic.IsotonicRegression(y_min=0, y_max=1).fit(scores, labels.astype(np.float64))
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))
