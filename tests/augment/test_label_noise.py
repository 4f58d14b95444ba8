"""Label noise, worked out by hand."""

from typing import Any

import numpy as np
import pytest

from tercet.augment.label_noise import label_noise
from tercet.augment.silver import ScoreRange
from tercet.errors import InputError
from tercet.records import Example, Floats


class FixedLabeller:
    """A labeller with fixed scores."""

    fingerprint = "fixed"

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def score_pairs(self, contexts: Any, candidates: Any) -> Floats:
        return np.array(self.scores, dtype=np.float32)


def gold(*scores: float) -> list[Example]:
    return [Example("a", ("b",), (score,)) for score in scores]


def test_the_error_is_in_units_of_the_gold_scores() -> None:
    noise = label_noise([FixedLabeller(0.0, 0.5, 1.0)], gold(0, 2, 5), ScoreRange(max_score=5))
    assert noise.mean_error == pytest.approx((0 + 0.5 + 0) / 3)
    assert noise.threshold is None
    assert noise.wrong is None


def test_several_labellers_are_averaged() -> None:
    noise = label_noise([FixedLabeller(0.0, 1.0), FixedLabeller(1.0, 1.0)], gold(0, 1), ScoreRange())
    assert noise.mean_error == pytest.approx((0.5 + 0) / 2)


def test_wrong_is_the_share_on_the_wrong_side_of_the_best_threshold() -> None:
    noise = label_noise([FixedLabeller(0.1, 0.6, 0.5, 0.9, 0.8)], gold(0, 0, 1, 1, 1), ScoreRange())
    # from 0.5 on, F1 is 2 * 3 / (2 * 3 + 1); from 0.8 on, 2 * 2 / (2 * 2 + 1)
    assert noise.threshold == pytest.approx(0.3)
    assert noise.wrong == pytest.approx(1 / 5)


def test_a_fixed_threshold_is_not_replaced_by_the_best_one() -> None:
    labeller = FixedLabeller(0.1, 0.6, 0.5, 0.9, 0.8)
    noise = label_noise([labeller], gold(0, 0, 1, 1, 1), ScoreRange(), threshold=0.55)
    assert (noise.threshold, noise.wrong) == (0.55, 2 / 5)  # 0.6 and 0.5 are on the wrong side


def test_graded_gold_scores_are_matches_from_a_score_on() -> None:
    labeller = FixedLabeller(0.1, 0.6, 0.5, 0.9, 0.8)
    noise = label_noise([labeller], gold(0, 2, 4, 5, 4), ScoreRange(max_score=5), match_from=4)
    assert noise.threshold == pytest.approx(5 * 0.3)
    assert noise.wrong == pytest.approx(1 / 5)


def test_constant_labels_have_no_correlation() -> None:
    assert label_noise([FixedLabeller(0.5, 0.5)], gold(0, 1), ScoreRange()).correlation == 0.0


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_scores_outside_0_to_1_are_refused(score: float) -> None:
    with pytest.raises(InputError, match="a labeller's scores must be from 0 to 1"):
        label_noise([FixedLabeller(0.5, score)], gold(0, 1), ScoreRange())
