"""Intervals, differences, seeds."""

import numpy as np
import pytest

from tercet.evaluate.results import by_group
from tercet.evaluate.significance import Columns, MeanOf, Sample, difference, figure, randomisation, spread


def sample(values: "np.ndarray") -> Sample:  # type: ignore[type-arg]
    return Sample(MeanOf("value"), {"value": np.asarray(values, dtype=float)})


def test_an_interval_of_a_mean_is_two_standard_errors_wide() -> None:
    values = np.random.default_rng(1).normal(size=2000)
    found = figure(sample(values))
    assert found.value == pytest.approx(values.mean())
    error = values.std() / np.sqrt(len(values))
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert found.low < found.value < found.high


def test_a_true_difference_is_called_better_and_worse() -> None:
    chance = np.random.default_rng(0)
    low, high = chance.random(500) < 0.5, chance.random(500) < 0.7
    found = difference(sample(high), sample(low))
    assert found.verdict == "better"
    assert found.value == pytest.approx(high.mean() - low.mean())
    assert difference(sample(low), sample(high)).verdict == "worse"


def test_models_of_equal_worth_are_seldom_called_different() -> None:
    chance = np.random.default_rng(0)
    verdicts = [
        difference(sample(chance.random(200) < 0.6), sample(chance.random(200) < 0.6), draws=300).verdict
        for _ in range(60)
    ]
    assert verdicts.count("no difference shown") >= 53  # 57 are expected


def test_a_model_is_not_better_than_itself() -> None:
    same = sample(np.arange(50.0))
    assert difference(same, same).p == 1
    assert randomisation(np.arange(50.0), np.arange(50.0)) == 1


def test_pairing_finds_what_the_intervals_hide() -> None:
    hard = np.random.default_rng(0).normal(size=300)
    ours, theirs = figure(sample(hard + 0.05)), figure(sample(hard))
    assert ours.low < theirs.high
    assert difference(sample(hard + 0.05), sample(hard)).verdict == "better"


def test_randomisation_equals_the_count_of_all_swaps() -> None:
    gaps = np.array([3.0, 1, 2, 4, -1, 2])
    swaps = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1)
    exact = np.mean(np.abs(gaps @ swaps) >= abs(gaps.sum()))
    assert randomisation(gaps, np.zeros(6), draws=20_000) == pytest.approx(exact, abs=0.01)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(3).normal(size=50)
    assert figure(sample(values)) == figure(sample(values))
    assert figure(sample(values)) != figure(sample(values), seed=1)


def test_spread_worked_out_by_hand() -> None:
    assert spread([1.0, 2.0, 3.0]) == (2.0, 1.0, 3)
    assert spread([4.0]) == (4.0, 0.0, 1)


def test_groups_count_alike_whatever_their_size() -> None:
    columns = {"value": np.array([1.0, 1, 1, 0]), "group": np.array([0, 0, 0, 1])}
    assert by_group(MeanOf("value"))(columns) == 0.5


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_few_cases_show_nothing(count: int) -> None:
    won, lost = sample(np.ones(count)), sample(np.zeros(count))
    assert difference(won, lost).verdict == "no difference shown"
    other = Sample(lambda columns: float(columns["value"].sum()), won.columns)
    assert difference(other, Sample(other.measure, lost.columns)).verdict == "no difference shown"


def test_no_part_is_lost_where_cases_are_drawn_by_part() -> None:
    parts = np.repeat(np.arange(12), 3)
    columns = {"value": np.arange(36.0), "group": parts}
    drawn = Sample(MeanOf("value"), columns, strata=parts)
    for places in drawn.draws(50, seed=0):
        assert np.bincount(parts[places]).tolist() == [3] * 12


def test_intervals_of_chance_clusters_hold_no_agreement() -> None:
    from sklearn.metrics import adjusted_rand_score

    def measure(columns: Columns) -> float:
        return float(adjusted_rand_score(columns["label"], columns["found"]))

    held = 0
    for seed in range(20):
        labels, found = np.random.default_rng(seed).integers(50, size=(2, 300))
        interval = figure(Sample(measure, {"label": labels, "found": found}, halves=True), draws=100)
        assert interval.low < interval.value < interval.high
        held += interval.low < 0 < interval.high
    assert held >= 16  # 19 are expected


def test_halves_give_the_interval_of_the_bootstrap_where_both_are_right() -> None:
    values = np.random.default_rng(2).normal(size=400)
    drawn, halved = figure(sample(values)), figure(Sample(MeanOf("value"), {"value": values}, halves=True))
    assert halved.high - halved.low == pytest.approx(drawn.high - drawn.low, rel=0.15)


def test_cases_are_drawn_with_putting_back_within_their_part() -> None:
    parts = np.repeat(np.arange(2), 50)
    drawn = next(Sample(MeanOf("value"), {"value": np.arange(100.0)}, strata=parts).draws(1, seed=0))
    assert len(np.unique(drawn)) < 90


def test_halves_of_a_measure_that_grows_with_its_cases_are_moved_to_the_whole() -> None:
    grows = Sample(lambda columns: float(len(columns["value"])), {"value": np.arange(100.0)}, halves=True)
    assert figure(grows, draws=50) == (100, 100, 100)


def median(columns: Columns) -> float:
    return float(np.median(columns["value"]))


def test_a_measure_that_is_no_mean_is_paired_and_two_sided_too() -> None:
    hard = np.random.default_rng(0).normal(size=300)
    better = difference(Sample(median, {"value": hard + 0.05}), Sample(median, {"value": hard}))
    assert better.verdict == "better"
    assert better.low == pytest.approx(0.05)
    turned = difference(
        Sample(median, {"value": hard}), Sample(median, {"value": -hard + 2 * np.median(hard)})
    )
    assert turned.p > 0.6
