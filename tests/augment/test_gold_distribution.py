"""Selected pairs are distributed like gold."""

import numpy as np
import pytest

from tercet.augment.gold_distribution import distance, inclusion_probabilities, match_gold_distribution
from tercet.errors import DataError


def test_selected_scores_are_distributed_like_gold() -> None:
    rng = np.random.default_rng(0)
    gold = rng.uniform(0, 5, size=800)
    pool = np.clip(rng.exponential(0.8, size=40_000), 0, 5)  # most pairs are unrelated
    drawn = pool[match_gold_distribution(pool, gold, 1000, seed=0)]
    assert distance(pool, gold) > 1.5
    assert distance(drawn, gold) < 0.1


def test_scores_are_selected_once_and_reproducibly() -> None:
    rng = np.random.default_rng(1)
    pool, gold = rng.normal(size=500), rng.normal(size=100)
    drawn = match_gold_distribution(pool, gold, 200, seed=3)
    assert len(set(drawn.tolist())) == 200
    np.testing.assert_array_equal(drawn, match_gold_distribution(pool, gold, 200, seed=3))
    assert set(drawn.tolist()) != set(match_gold_distribution(pool, gold, 200, seed=4).tolist())


def test_at_most_the_whole_pool_is_selected() -> None:
    pool = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(match_gold_distribution(pool, pool, 3), [0, 1, 2])
    with pytest.raises(DataError, match="cannot select 4 pairs from a pool of 3"):
        match_gold_distribution(pool, pool, 4)


@pytest.mark.parametrize("pool", [np.full(10, 0.5), np.array([0.0] * 9 + [1e-200])])
def test_a_constant_pool_is_refused(pool: np.ndarray) -> None:
    with pytest.raises(DataError, match="nearly the same score"):
        match_gold_distribution(pool, np.array([0.0, 1.0, 2.0]), 3)


def test_constant_gold_is_refused() -> None:
    with pytest.raises(DataError, match="all 3 scores are 2"):
        match_gold_distribution(np.array([0.0, 1.0]), np.full(3, 2.0), 1)


def test_the_distance_is_the_mean_shift_of_scores() -> None:
    assert distance(np.array([0.0, 1.0]), np.array([0.5, 1.5])) == pytest.approx(0.5)


def test_inclusion_probabilities_are_proportional_up_to_one() -> None:
    np.testing.assert_allclose(inclusion_probabilities(np.array([1.0, 1.0, 2.0]), 2), [0.5, 0.5, 1.0])
    np.testing.assert_allclose(inclusion_probabilities(np.array([1.0, 1.0, 100.0]), 2), [0.5, 0.5, 1.0])
    np.testing.assert_allclose(inclusion_probabilities(np.array([1.0, 3.0]), 2), [1.0, 1.0])
