"""Measures of rankings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tercet.evaluate.metrics import accuracy, mean_reciprocal_rank, places, recall_at, spearman


def test_places_worked_out_by_hand() -> None:
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]], dtype=np.float32)
    assert places(scores, [2, 0]).tolist() == [2, 1]
    assert recall_at(places(scores, [2, 0]), 1) == 1 / 2
    assert recall_at(places(scores, [2, 0]), 2) == 2 / 2


def test_constant_scores_earn_no_recall_at_one() -> None:
    scores = np.zeros((4, 10), dtype=np.float32)
    assert places(scores, [0, 0, 3, 9]).tolist() == [10, 10, 10, 10]
    assert recall_at(places(scores, [0, 0, 3, 9]), 1) == 0


def test_scores_that_are_not_numbers_earn_nothing() -> None:
    scores = np.full((2, 3), np.nan, dtype=np.float32)
    assert places(scores, [0, 1]).tolist() == [3, 3]


def test_mean_reciprocal_rank_worked_out_by_hand() -> None:
    assert mean_reciprocal_rank(np.array([1, 2, 4])) == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.floats(-1e3, 1e3, allow_nan=False).map(lambda x: round(x, 2))),
        min_size=2,
        max_size=40,
    )
)
def test_spearman_equals_scipy(pairs: list[tuple[int, float]]) -> None:
    left, right = zip(*pairs, strict=True)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert spearman(left, right) == 0
    else:
        assert spearman(left, right) == pytest.approx(stats.spearmanr(left, right).statistic, abs=1e-9)


def test_accuracy_is_the_share_that_was_found() -> None:
    assert accuracy([0, 1, 2, 2], [0, 1, 1, 2.0]) == 0.75
