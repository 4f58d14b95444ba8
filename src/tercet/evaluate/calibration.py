"""Calibrates a scorer on a part of labelled pairs, and measures the probabilities on the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.errors import InputError
from tercet.evaluate.binary_metrics import brier_score, expected_calibration_error, log_loss
from tercet.records import Pair
from tercet.scorers.calibration import Calibration, check_labels, fit_calibration
from tercet.scorers.scorer import Scorer
from tercet.settings.calibration import Method

MIN_OF_EACH = 10
"""Matches, and non-matches, from which a curve can be fitted and measured at all."""
HELD_OUT_SHARE = 0.3


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """A calibration, and how good probabilities of held-out pairs are before and after it.

    Before, the probability is that of an earlier calibration, or the score itself, limited to 0 to 1.
    """

    calibration: Calibration
    fitted: int
    held_out: int
    before: dict[str, float]
    after: dict[str, float]


def calibrate_held_out(
    scorer: Scorer, pairs: Sequence[Pair], *, method: Method = "platt", seed: int = 0
) -> CalibrationReport:
    """Fit a calibration to 70% of the pairs, measure it on the rest; the scorer keeps it."""
    labels = np.array([pair.score for pair in pairs])
    check_labels(labels)
    _check_enough(labels)
    scores = scorer.score_pairs([pair.context for pair in pairs], [pair.candidate for pair in pairs])
    held_out = held_out_mask(labels, seed=seed)
    calibration = fit_calibration(scores[~held_out], labels[~held_out], method)
    before = np.clip(scores, 0, 1) if scorer.calibration is None else scorer.calibration.probabilities(scores)
    scorer.calibration = calibration
    return CalibrationReport(
        calibration=calibration,
        fitted=int((~held_out).sum()),
        held_out=int(held_out.sum()),
        before=_measured(before[held_out], labels[held_out]),
        after=_measured(calibration.probabilities(scores[held_out]), labels[held_out]),
    )


def held_out_mask(labels: NDArray[np.float64], *, seed: int) -> NDArray[np.bool_]:
    """``[N]``: which pairs are held out, the same share of matches and of non-matches."""
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(labels), dtype=np.bool_)
    for label in (0, 1):
        positions = np.flatnonzero(labels == label)
        held_out[rng.permutation(positions)[: round(HELD_OUT_SHARE * len(positions))]] = True
    return held_out


def _check_enough(labels: NDArray[np.float64]) -> None:
    matches = int(np.count_nonzero(labels))
    if min(matches, len(labels) - matches) < MIN_OF_EACH:
        raise InputError(
            f"calibration needs at least {MIN_OF_EACH} matches (1) and {MIN_OF_EACH} non-matches (0), got "
            f"{matches} and {len(labels) - matches}: label more pairs"
        )


def _measured(probabilities: NDArray[np.float32], labels: NDArray[np.float64]) -> dict[str, float]:
    return {
        "calibration error": expected_calibration_error(probabilities, labels),
        "Brier score": brier_score(probabilities, labels),
        "log loss": log_loss(probabilities, labels),
    }
