"""What labels are worth, worked out by hand."""

from typing import Any

import numpy as np
import pytest

from tercet.augment.noise import label_noise
from tercet.augment.silver import Range
from tercet.errors import InputError
from tercet.records import Floats, Lesson


class Labels:
    """A labeller that says what it was told to."""

    fingerprint = "told"

    def __init__(self, *shares: float) -> None:
        self.shares = shares

    def score_pairs(self, contexts: Any, candidates: Any) -> Floats:
        return np.array(self.shares, dtype=np.float32)


def gold(*scores: float) -> list[Lesson]:
    return [Lesson("a", ("b",), (score,)) for score in scores]


def test_the_error_is_in_units_of_gold() -> None:
    noise = label_noise([Labels(0.0, 0.5, 1.0)], gold(0, 2, 5), Range(highest=5))
    assert noise.mean_error == pytest.approx((0 + 0.5 + 0) / 3)
    assert noise.threshold is None
    assert noise.wrong is None


def test_several_labellers_count_by_their_mean() -> None:
    noise = label_noise([Labels(0.0, 1.0), Labels(1.0, 1.0)], gold(0, 1), Range())
    assert noise.mean_error == pytest.approx((0.5 + 0) / 2)


def test_wrong_are_those_on_the_wrong_side_of_the_best_threshold() -> None:
    noise = label_noise([Labels(0.1, 0.6, 0.5, 0.9, 0.8)], gold(0, 0, 1, 1, 1), Range())
    # from 0.5 on, F1 is 2 * 3 / (2 * 3 + 1); from 0.8 on, 2 * 2 / (2 * 2 + 1)
    assert noise.threshold == pytest.approx(0.3)
    assert noise.wrong == pytest.approx(1 / 5)


def test_one_score_for_everything_correlates_with_nothing() -> None:
    assert label_noise([Labels(0.5, 0.5)], gold(0, 1), Range()).correlation == 0.0


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_scores_that_are_no_shares_are_refused(share: float) -> None:
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        label_noise([Labels(0.5, share)], gold(0, 1), Range())
