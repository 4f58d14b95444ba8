"""Calibration on a part of labelled pairs, measured on the rest."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError
from tercet.evaluate.binary_metrics import brier_score, expected_calibration_error, log_loss
from tercet.evaluate.calibration import CalibrationReport, calibrate_held_out, held_out_mask
from tercet.records import Context, Scores
from tercet.scorers.calibration import Platt
from tercet.scorers.scorer import Scorer

PAIRS = [
    tercet.Pair(text, other, float(text == other)) for text in SENTENCES for other in [text, text, *SENTENCES]
]
"""Matches, 24 of 80, are equal texts."""


def held_out() -> "np.ndarray":
    return held_out_mask(np.array([pair.score for pair in PAIRS]), seed=0)


def with_wrong_texts(pairs: list[tercet.Pair], chosen: "np.ndarray") -> list[tercet.Pair]:
    """The pairs; the chosen matches get texts that differ, the chosen non-matches equal ones."""
    return [
        replace(pair, candidate="never" if pair.score else pair.context) if wrong else pair
        for pair, wrong in zip(pairs, chosen, strict=True)
    ]


def curve_of(report: CalibrationReport) -> list[float]:
    assert isinstance(report.calibration.curve, Platt)
    return [report.calibration.curve.slope, report.calibration.curve.intercept]


def test_held_out_pairs_have_no_part_in_the_curve(tiny: tercet.BiEncoder) -> None:
    honest = calibrate_held_out(tiny, PAIRS)
    assert (honest.fitted, honest.held_out) == (24 - 7 + 56 - 17, 7 + 17)
    assert honest.calibration.pairs == honest.fitted
    tiny.calibration = None
    misled = calibrate_held_out(tiny, with_wrong_texts(PAIRS, held_out()))
    assert curve_of(misled) == pytest.approx(curve_of(honest), rel=1e-4)
    assert misled.calibration.threshold == pytest.approx(honest.calibration.threshold, rel=1e-4)


def test_only_held_out_pairs_are_measured(tiny: tercet.BiEncoder) -> None:
    honest = calibrate_held_out(tiny, PAIRS)
    assert honest.after["Brier score"] < 0.1
    misled = calibrate_held_out(tiny, with_wrong_texts(PAIRS, held_out()))
    assert misled.after["Brier score"] > 0.5  # every match and non-match that is measured is wrong


def test_grades_are_refused_before_anything_is_scored(tiny: tercet.BiEncoder) -> None:
    grades = [replace(pair, candidate="", score=3.5) for pair in PAIRS]  # scoring would refuse these texts
    with pytest.raises(InputError, match=r"labels must be 1 .* or 0 .*, got 3\.5: convert grades"):
        calibrate_held_out(tiny, grades)


def test_ten_matches_and_ten_non_matches_are_enough(tiny: tercet.BiEncoder) -> None:
    matches = [pair for pair in PAIRS if pair.score == 1][:10]
    others = [pair for pair in PAIRS if pair.score == 0][:10]
    report = calibrate_held_out(tiny, matches + others)
    assert (report.fitted, report.held_out) == (7 + 7, 3 + 3)
    for few in (matches[:9] + others, matches + others[:9]):
        counts = [sum(pair.score == label for pair in few) for label in (1, 0)]
        with pytest.raises(
            InputError, match=rf"10 non-matches \(0\), got {counts[0]} and {counts[1]}: label"
        ):
            calibrate_held_out(tiny, few)


def measured(probabilities: "np.ndarray", labels: "np.ndarray") -> dict[str, float]:
    return {
        "calibration error": expected_calibration_error(probabilities, labels),
        "Brier score": brier_score(probabilities, labels),
        "log loss": log_loss(probabilities, labels),
    }


class Lengths(Scorer):
    """The score of a pair is from -1 for texts of very different lengths to 2 for equal ones."""

    kind = "lengths"

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        raise NotImplementedError

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> "np.ndarray":
        gaps = [abs(len(left) - len(right)) for left, right in zip(contexts, candidates, strict=True)]
        return np.maximum(2 - 0.2 * np.array(gaps), -1).astype(np.float32)


def test_a_report_measures_the_same_held_out_pairs_before_and_after() -> None:
    scorer, labels = Lengths(), np.array([pair.score for pair in PAIRS])
    scores = scorer.score_pairs([pair.context for pair in PAIRS], [pair.candidate for pair in PAIRS])
    scores, labels = scores[held_out()], labels[held_out()]
    assert (scores.min(), scores.max()) == (-1, 2)  # limited to 0 and 1, unless they are calibrated
    first = calibrate_held_out(scorer, PAIRS)
    assert first.before == pytest.approx(measured(np.clip(scores, 0, 1), labels))
    assert first.after == pytest.approx(measured(first.calibration.probabilities(scores), labels))
    assert calibrate_held_out(scorer, PAIRS, method="isotonic").before == pytest.approx(first.after)


def test_another_seed_holds_out_other_pairs() -> None:
    labels = np.array([pair.score for pair in PAIRS])
    masks = [held_out_mask(labels, seed=seed) for seed in (0, 1)]
    assert [int(mask.sum()) for mask in masks] == [24, 24]
    assert (masks[0] != masks[1]).any()
