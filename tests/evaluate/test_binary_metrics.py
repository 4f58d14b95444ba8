"""Metrics of binary classification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from tercet.evaluate.binary_metrics import (
    accuracy_at_best_threshold,
    binary_average_precision,
    brier_score,
    expected_calibration_error,
    f1_at_best_threshold,
    log_loss,
    reliability,
)

LABELLED = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=30)


def test_accuracy_at_the_best_threshold_worked_out_by_hand() -> None:
    assert accuracy_at_best_threshold([0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0]) == 3 / 4
    assert accuracy_at_best_threshold([0.9, 0.1], [0, 1]) == 1 / 2
    assert accuracy_at_best_threshold([0.9, 0.8, 0.7], [0, 0, 0]) == 1  # no pair is predicted as a match


@given(LABELLED)
def test_accuracy_equals_trying_every_threshold(rows: list[tuple[int, bool]]) -> None:
    scores, labels = (np.array(side) for side in zip(*rows, strict=True))
    tried = [np.mean((scores >= threshold) == labels) for threshold in [*np.unique(scores), np.inf]]
    assert accuracy_at_best_threshold(scores, labels) == pytest.approx(max(tried))


@given(LABELLED)
def test_f1_equals_trying_every_threshold(rows: list[tuple[int, bool]]) -> None:
    scores, labels = (np.array(side) for side in zip(*rows, strict=True))
    if labels.any():
        found = [
            2 * np.sum((scores >= threshold) & labels) / (np.sum(scores >= threshold) + np.sum(labels))
            for threshold in np.unique(scores)
        ]
        assert f1_at_best_threshold(scores, labels) == pytest.approx(max(found))


@given(st.lists(st.booleans(), min_size=2, max_size=30), st.randoms())
def test_average_precision_without_ties_equals_scikit_learn(labels: list[bool], rng: object) -> None:
    if any(labels):
        scores = np.random.default_rng(len(labels)).permutation(len(labels)).astype(float)
        assert binary_average_precision(scores, labels) == pytest.approx(
            average_precision_score(labels, scores)
        )


def test_equal_scores_count_against_the_model() -> None:
    assert binary_average_precision([0.5, 0.5], [1, 0]) == 1 / 2


def test_calibration_error_worked_out_by_hand() -> None:
    probabilities, labels = [0.9, 0.95, 0.1, 0.2], [1, 0, 0, 1]
    # bin 9: mean probability .925, share .5 (2 pairs); bin 1: .1, 0 (1); bin 2: .2, 1 (1)
    assert expected_calibration_error(probabilities, labels) == pytest.approx((2 * 0.425 + 0.1 + 0.8) / 4)
    assert reliability([1.0, 1.0], [1, 1]).probability.tolist() == [1.0]
    assert expected_calibration_error([0.95, 1.0], [1, 0]) == pytest.approx(
        0.475
    )  # 1 belongs to the last bin


def test_perfect_probabilities_have_no_calibration_error() -> None:
    assert expected_calibration_error([0.0, 1.0, 1.0], [0, 1, 1]) == 0


def test_brier_score_worked_out_by_hand() -> None:
    assert brier_score([0.9, 0.2], [1, 1]) == pytest.approx((0.1**2 + 0.8**2) / 2)


def test_log_loss_worked_out_by_hand() -> None:
    assert log_loss([0.5, 0.75], [1, 0]) == pytest.approx((np.log(2) + np.log(4)) / 2)


def test_the_log_loss_of_a_certain_error_is_finite() -> None:
    assert log_loss([0.0, 1.0], [1, 0]) == pytest.approx(7 * np.log(10))
    assert log_loss([0.0, 1.0], [0, 1]) == pytest.approx(1e-7)


def test_bins_have_equal_width_and_include_their_lower_end() -> None:
    found = reliability([0.0, 0.49, 0.5, 1.0], [0, 1, 1, 1], bins=2)
    assert found.probability.tolist() == pytest.approx([0.245, 0.75])
    assert found.match_share.tolist() == [0.5, 1.0]
    assert found.pairs.tolist() == [2, 2]
    assert len(reliability(np.linspace(0.05, 0.95, 10), [1] * 10).pairs) == 10
