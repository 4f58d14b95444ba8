import numpy as np
import pytest

from tercet.augment.like_gold import distance, like_gold, shares
from tercet.errors import DataError


def test_what_is_drawn_is_spread_as_gold_is() -> None:
    chance = np.random.default_rng(0)
    gold = chance.uniform(0, 5, size=800)
    pool = np.clip(chance.exponential(0.8, size=40_000), 0, 5)  # most pairs have little in common
    drawn = pool[like_gold(pool, gold, 1000, seed=0)]
    assert distance(pool, gold) > 1.5
    assert distance(drawn, gold) < 0.1


def test_each_is_drawn_once_and_the_same_for_the_same_seed() -> None:
    chance = np.random.default_rng(1)
    pool, gold = chance.normal(size=500), chance.normal(size=100)
    drawn = like_gold(pool, gold, 200, seed=3)
    assert len(set(drawn.tolist())) == 200
    np.testing.assert_array_equal(drawn, like_gold(pool, gold, 200, seed=3))
    assert set(drawn.tolist()) != set(like_gold(pool, gold, 200, seed=4).tolist())


def test_all_may_be_drawn_and_no_more() -> None:
    pool = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(like_gold(pool, pool, 3), [0, 1, 2])
    with pytest.raises(DataError, match="4 pairs cannot be drawn from a pool of 3"):
        like_gold(pool, pool, 4)


@pytest.mark.parametrize("pool", [np.full(10, 0.5), np.array([0.0] * 9 + [1e-200])])
def test_a_labeller_that_says_the_same_of_everything_is_named(pool: np.ndarray) -> None:
    with pytest.raises(DataError, match="nearly the same score"):
        like_gold(pool, np.array([0.0, 1.0, 2.0]), 3)


def test_one_score_has_no_spread() -> None:
    with pytest.raises(DataError, match="all 3 scores are 2"):
        like_gold(np.array([0.0, 1.0]), np.full(3, 2.0), 1)


def test_the_distance_is_how_far_scores_must_be_moved() -> None:
    assert distance(np.array([0.0, 1.0]), np.array([0.5, 1.5])) == pytest.approx(0.5)


def test_shares_are_weights_up_to_one() -> None:
    np.testing.assert_allclose(shares(np.array([1.0, 1.0, 2.0]), 2), [0.5, 0.5, 1.0])
    np.testing.assert_allclose(shares(np.array([1.0, 1.0, 100.0]), 2), [0.5, 0.5, 1.0])
    np.testing.assert_allclose(shares(np.array([1.0, 3.0]), 2), [1.0, 1.0])
