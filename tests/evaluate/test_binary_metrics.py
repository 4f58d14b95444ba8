"""Metrics of binary classification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from tercet.evaluate.binary_metrics import (
    accuracy_at_best_threshold,
    binary_average_precision,
    expected_calibration_error,
    f1_at_best_threshold,
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
