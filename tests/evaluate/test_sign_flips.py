"""p-values of paired tests: worked out by hand, by enumeration, and equal to scipy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test

from tercet.evaluate import sign_flips
from tercet.evaluate.sign_flips import _common_unit, _counted_p, sign_flip_p


def brute_force(gaps: list[float]) -> float:
    """The share of all signs with a sum as far from 0, by trying them."""
    sums = [abs(float(np.dot(signs, gaps))) for signs in product((1, -1), repeat=len(gaps))]
    return float(np.mean([each >= abs(sum(gaps)) - 1e-9 for each in sums]))


def test_eight_of_ten_worked_out_by_hand() -> None:
    gaps = np.array([1.0] * 8 + [-1.0] * 2 + [0.0] * 5)
    assert sign_flip_p(gaps) == pytest.approx(2 * (45 + 10 + 1) / 1024)  # 10 over 8, 9 and 10


def test_three_different_sizes_worked_out_by_hand() -> None:
    assert sign_flip_p(np.array([4.0, 2.0, -1.0])) == 4 / 8  # ±5 and ±7 of ±1, ±3, ±5, ±7


@pytest.mark.parametrize(("wins", "losses"), [(1, 0), (5, 5), (40, 20), (200, 160), (700, 620), (6000, 5800)])
def test_wins_and_losses_equal_the_exact_sign_test_of_scipy(wins: int, losses: int) -> None:
    gaps = np.array([0.25] * wins + [-0.25] * losses)
    expected = binomtest(wins, wins + losses).pvalue
    assert sign_flip_p(gaps) == pytest.approx(expected, rel=1e-7)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_few_whole_numbers_equal_trying_all_signs(gaps: list[int]) -> None:
    assert sign_flip_p(np.array(gaps, dtype=float)) == pytest.approx(brute_force([*map(float, gaps)]))


@settings(deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=12), st.floats(0.1, 3))
def test_the_distribution_of_the_sum_equals_enumeration(gaps: list[int], unit: float) -> None:
    sizes = np.abs(np.array([gap for gap in gaps if gap], dtype=float)) * unit
    observed = abs(sum(gaps)) * unit
    if observed:
        assert _counted_p(sizes, observed) == pytest.approx(brute_force([gap * unit for gap in gaps]))


def test_paired_means_equal_the_exact_permutation_test_of_scipy() -> None:
    rng = np.random.default_rng(3)
    gaps = rng.normal(0.4, 1, size=12)
    expected = permutation_test(
        (gaps, np.zeros(12)),
        lambda left, right, axis: np.mean(left - right, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    ).pvalue
    assert sign_flip_p(gaps) == pytest.approx(expected)


@pytest.mark.parametrize("seeds", [3, 4])
def test_ties_between_means_over_seeds_count(seeds: int) -> None:
    """Multiples of a third cannot be written exactly; without a common unit, equal sums would differ."""
    rng = np.random.default_rng(seeds)
    wins = rng.integers(-seeds, seeds + 1, size=60)
    assert sign_flip_p(wins / seeds) == pytest.approx(sign_flip_p(wins.astype(float)), rel=1e-9)


def test_rounding_changes_p_by_less_than_one_in_10_000(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 11, size=(2, 500))
    gaps = np.sort(1 / ranks[0] - 1 / ranks[1]) + 0.0
    gaps[:5] *= -1  # p is near .05
    exact = sign_flip_p(gaps)
    assert 0.03 < exact < 0.1
    monkeypatch.setattr(sign_flips, "EXACT_UNITS", 0)
    assert sign_flip_p(gaps) != exact
    assert sign_flip_p(gaps) == pytest.approx(exact, abs=1e-4)


def test_real_numbers_beyond_enumeration_are_off_by_less_than_one_in_10_000() -> None:
    gaps = np.random.default_rng(1).normal(0.4, 1, size=18)
    exact = sign_flip_p(gaps)  # enumerated
    assert _counted_p(np.abs(gaps), abs(gaps.sum())) == pytest.approx(exact, abs=1e-4)


def test_p_agrees_with_random_signs() -> None:
    rng = np.random.default_rng(5)
    gaps = rng.normal(0.09, 1, size=400)
    signs = rng.choice([-1.0, 1.0], size=(20_000, 400))
    drawn = np.mean(np.abs(signs @ gaps) >= abs(gaps.sum()))
    assert sign_flip_p(gaps) == pytest.approx(drawn, abs=0.006)  # four standard errors at p = .05


def test_p_of_an_overwhelming_difference_is_tiny_and_positive() -> None:
    assert 0 < sign_flip_p(np.ones(100)) == pytest.approx(2.0**-99)
    assert 0 < sign_flip_p(np.linspace(1, 2, 300)) < 1e-12
    assert sign_flip_p(np.ones(5000)) < 1e-300


def test_p_is_not_less_than_that_of_all_signs_alike() -> None:
    assert sign_flip_p(np.linspace(1, 2, 300)) >= 2.0**-299  # two of 2**300, which a Fourier transform loses


@pytest.mark.parametrize("unit", [1e-150, 1e-12, 1e12, 1e150])
def test_the_unit_of_the_gaps_does_not_matter(unit: float) -> None:
    gaps = np.random.default_rng(2).normal(0.4, 1, size=30)
    assert sign_flip_p(gaps * unit) == pytest.approx(sign_flip_p(gaps), rel=1e-4)


def test_no_difference_has_a_p_of_1() -> None:
    assert sign_flip_p(np.zeros(7)) == 1
    assert sign_flip_p(np.array([])) == 1
    assert sign_flip_p(np.array([3.0, -1.0, -2.0])) == 1
    assert sign_flip_p(np.array([1.0])) == 1  # both signs are as far from 0


@pytest.mark.parametrize(
    ("sizes", "unit"),
    [([1 / 3, 2 / 3, 1.0], 1 / 3), ([0.5, 1 / 6], 1 / 6), ([1 / 4, 1 / 10], 0.05), ([7.0], 7)],
)
def test_the_common_unit_of_fractions(sizes: list[float], unit: float) -> None:
    assert _common_unit(np.array(sizes)) == pytest.approx(unit)
