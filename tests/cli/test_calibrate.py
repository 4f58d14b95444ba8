"""``tercet calibrate``, and how probabilities are measured."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, tercet

import tercet as library
from tercet.data.sample import pairs
from tercet.evaluate.binary_metrics import brier_score, log_loss
from tercet.evaluate.calibration import held_out_mask


def write_labels(path: Path, labels: list[int]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "reply", "label"])
        for pair, label in zip(pairs("en"), labels, strict=False):
            writer.writerow([pair.context, pair.candidate, label])
    return str(path)


COLUMNS = ("--column", "context=question", "--column", "candidate=reply", "--column", "score=label")
LABELS = [int(pair.score >= 3) for pair in pairs("en")]


def test_brier_score_and_log_loss_worked_out_by_hand() -> None:
    assert brier_score([0.5, 1.0, 0.0], [1, 1, 1]) == pytest.approx((0.25 + 0 + 1) / 3)
    assert log_loss([0.5, 0.25], [1, 0]) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)
    assert np.isfinite(log_loss([0.0, 1.0], [1, 0]))


def test_three_of_ten_matches_and_non_matches_are_held_out() -> None:
    labels = np.array([0.0] * 20 + [1.0] * 10)
    held_out = held_out_mask(labels, seed=0)
    assert held_out[:20].sum() == 6
    assert held_out[20:].sum() == 3
    np.testing.assert_array_equal(held_out, held_out_mask(labels, seed=0))
    assert (held_out != held_out_mask(labels, seed=1)).any()


def test_a_calibrated_model_is_saved_with_its_threshold(tmp_path: Path) -> None:
    file, out = write_labels(tmp_path / "labels.csv", LABELS), tmp_path / "calibrated"
    shown = tercet("calibrate", "bi", "--data", file, *COLUMNS, "-o", str(out), "--json")
    report = json.loads(shown.stdout)
    assert report["fitted"] + report["held_out"] == len(LABELS)
    assert report["held_out"] == round(0.3 * LABELS.count(0)) + round(0.3 * LABELS.count(1))
    assert report["after"]["Brier score"] < report["before"]["Brier score"]
    scorer = library.load(out, device="cpu")
    assert scorer.calibration is not None
    assert scorer.calibration.threshold == report["threshold"]
    assert scorer.probability("a cat", ["a cat"])[0] > scorer.probability("a cat", ["stocks fell"])[0]


def test_before_and_after_are_shown(tmp_path: Path) -> None:
    shown = tercet(
        "calibrate", "bi", "--data", "sample:pairs.en", "--match-from", "3", "-o", str(tmp_path / "out")
    ).stdout
    assert "36 held-out pairs" in shown
    assert all(name in shown for name in ("before", "after", "calibration error", "Brier score", "log loss"))
    assert "match from a score of 0." in shown


def test_what_cannot_be_calibrated_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    few = write_labels(tmp_path / "few.csv", [1] * 40 + [0] * 9)
    one = write_labels(tmp_path / "one.csv", [1] * 40)
    for file, message in (
        (few, "at least 10 matches (1) and 10 non-matches (0), got 40 and 9: label more pairs"),
        (one, "got 40 and 0"),
    ):
        assert_fails(tercet("calibrate", "bi", "--data", file, *COLUMNS, "-o", str(out)), message)
    grades = tercet("calibrate", "bi", "--data", "sample:pairs.en", "-o", str(out))
    assert_fails(grades, "labels must be 1 (match) or 0 (no match)")
    assert "--match-from" in grades.stderr
    assert not out.exists()


def test_an_existing_folder_is_kept(tmp_path: Path) -> None:
    assert_fails(tercet("calibrate", "bi", "--data", "sample:pairs.en", "-o", str(tmp_path)), "exists")
