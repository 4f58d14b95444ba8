"""Measures of rankings."""

import numpy as np

from tercet.evaluate.metrics import places, recall_at


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
