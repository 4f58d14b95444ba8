"""Calibration on a part of labelled pairs, measured on the rest."""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError
from tercet.evaluate.calibration import CalibrationReport, calibrate_held_out, held_out_mask
from tercet.scorers.calibration import Platt

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
