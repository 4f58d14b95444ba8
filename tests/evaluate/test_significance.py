"""Confidence intervals, paired tests and seeds."""

import numpy as np
import pytest

from tercet.evaluate.results import Result, mean_over_groups
from tercet.evaluate.run import Row
from tercet.evaluate.significance import (
    Columns,
    Difference,
    MeanOf,
    Sample,
    difference,
    estimate,
    permutation_test,
    seed_spread,
)


def sample(values: "np.ndarray") -> Sample:  # type: ignore[type-arg]
    return Sample(MeanOf("value"), {"value": np.asarray(values, dtype=float)})


def test_an_interval_of_a_mean_is_two_standard_errors_wide() -> None:
    values = np.random.default_rng(1).normal(size=2000)
    found = estimate(sample(values))
    assert found.value == pytest.approx(values.mean())
    error = values.std() / np.sqrt(len(values))
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert found.low < found.value < found.high


def test_a_true_difference_is_called_better_and_worse() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.random(500) < 0.5, rng.random(500) < 0.7
    found = difference(sample(high), sample(low))
    assert found.verdict == "better"
    assert found.value == pytest.approx(high.mean() - low.mean())
    assert difference(sample(low), sample(high)).verdict == "worse"


def test_equally_good_models_are_rarely_called_different() -> None:
    rng = np.random.default_rng(0)
    verdicts = [
        difference(sample(rng.random(200) < 0.6), sample(rng.random(200) < 0.6), resamples=300).verdict
        for _ in range(60)
    ]
    assert verdicts.count("no difference shown") >= 53  # 57 are expected


def test_a_model_is_not_better_than_itself() -> None:
    same = sample(np.arange(50.0))
    assert difference(same, same).p == 1
    assert permutation_test(np.arange(50.0), np.arange(50.0)) == 1


def test_a_paired_test_finds_differences_within_the_intervals() -> None:
    hard = np.random.default_rng(0).normal(size=300)
    ours, theirs = estimate(sample(hard + 0.05)), estimate(sample(hard))
    assert ours.low < theirs.high
    assert difference(sample(hard + 0.05), sample(hard)).verdict == "better"


def test_the_permutation_test_equals_counting_all_swaps() -> None:
    gaps = np.array([3.0, 1, 2, 4, -1, 2])
    swaps = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1)
    exact = np.mean(np.abs(gaps @ swaps) >= abs(gaps.sum()))
    assert permutation_test(gaps, np.zeros(6)) == exact


def test_the_same_seed_yields_the_same_interval() -> None:
    values = np.random.default_rng(3).normal(size=50)
    assert estimate(sample(values)) == estimate(sample(values))
    assert estimate(sample(values)) != estimate(sample(values), seed=1)


def test_seed_spread_worked_out_by_hand() -> None:
    assert seed_spread([1.0, 2.0, 3.0]) == (2.0, 1.0, 3)
    assert seed_spread([4.0]) == (4.0, 0.0, 1)


def test_groups_have_equal_weight_whatever_their_size() -> None:
    columns = {"value": np.array([1.0, 1, 1, 0]), "group": np.array([0, 0, 0, 1])}
    assert mean_over_groups(MeanOf("value"))(columns) == 0.5


@pytest.mark.parametrize("count", [1, 3, 5])
def test_few_cases_are_never_significant(count: int) -> None:
    won, lost = sample(np.ones(count)), sample(np.zeros(count))
    assert difference(won, lost).verdict == "no difference shown"
    other = Sample(lambda columns: float(columns["value"].sum()), won.columns)
    assert difference(other, Sample(other.metric, lost.columns)).verdict == "no difference shown"


def test_every_stratum_keeps_its_size() -> None:
    strata = np.repeat(np.arange(12), 3)
    columns = {"value": np.arange(36.0), "group": strata}
    sampled = Sample(MeanOf("value"), columns, strata=strata)
    for positions in sampled.resamples(50, seed=0):
        assert np.bincount(strata[positions]).tolist() == [3] * 12


def test_intervals_of_random_clusters_contain_zero_agreement() -> None:
    from sklearn.metrics import adjusted_rand_score

    def metric(columns: Columns) -> float:
        return float(adjusted_rand_score(columns["label"], columns["found"]))

    held = 0
    for seed in range(20):
        labels, found = np.random.default_rng(seed).integers(50, size=(2, 300))
        interval = estimate(
            Sample(metric, {"label": labels, "found": found}, half_samples=True), resamples=100
        )
        assert interval.low < interval.value < interval.high
        held += interval.low < 0 < interval.high
    assert held >= 16  # 19 are expected


def test_half_samples_yield_the_interval_of_the_bootstrap_for_means() -> None:
    values = np.random.default_rng(2).normal(size=400)
    bootstrap, halved = (
        estimate(sample(values)),
        estimate(Sample(MeanOf("value"), {"value": values}, half_samples=True)),
    )
    assert halved.high - halved.low == pytest.approx(bootstrap.high - bootstrap.low, rel=0.15)


def test_strata_are_resampled_with_replacement() -> None:
    strata = np.repeat(np.arange(2), 50)
    positions = next(Sample(MeanOf("value"), {"value": np.arange(100.0)}, strata=strata).resamples(1, seed=0))
    assert len(np.unique(positions)) < 90


def test_half_samples_of_a_metric_that_grows_with_the_cases_are_shifted_to_its_value() -> None:
    grows = Sample(
        lambda columns: float(len(columns["value"])), {"value": np.arange(100.0)}, half_samples=True
    )
    assert estimate(grows, resamples=50) == (100, 100, 100)


def median(columns: Columns) -> float:
    return float(np.median(columns["value"]))


def test_metrics_other_than_means_are_paired_and_two_sided_too() -> None:
    hard = np.random.default_rng(0).normal(size=300)
    better = difference(Sample(median, {"value": hard + 0.05}), Sample(median, {"value": hard}))
    assert better.verdict == "better"
    assert better.low == pytest.approx(0.05)
    turned = difference(
        Sample(median, {"value": hard}), Sample(median, {"value": -hard + 2 * np.median(hard)})
    )
    assert turned.p > 0.6


def medians(count: int, gap: float) -> tuple[Sample, Sample]:
    """A model that beats another by the same gap in each case; the metric is not a mean."""
    hard = np.random.default_rng(0).normal(size=count)
    return Sample(median, {"value": hard + gap}), Sample(median, {"value": hard})


def test_metrics_other_than_means_can_be_significant_from_20_cases_on() -> None:
    assert difference(*medians(19, gap=9)).p == 1
    assert difference(*medians(20, gap=9)).verdict == "better"
    assert difference(*medians(20, gap=-9)).verdict == "worse"


def test_the_p_of_1000_resamples_is_never_below_2_in_1001_and_never_above_1() -> None:
    assert difference(*medians(50, gap=9)).p == 2 / 1001
    assert difference(*medians(50, gap=-9)).p == 2 / 1001
    assert difference(*medians(50, gap=0)).p == 1


def test_the_p_of_a_bootstrap_counts_the_resamples_on_the_rarer_side_of_zero() -> None:
    ours, theirs = Sample(median, {"value": np.arange(20.0)}), Sample(median, {"value": np.full(20, 6.0)})
    gaps = np.array([ours.value_at(each) - theirs.value_at(each) for each in ours.resamples(200, seed=5)])
    beyond = np.count_nonzero(gaps <= 0)
    assert np.count_nonzero(gaps < 0) < beyond < 20  # a gap of zero counts on both sides
    assert difference(ours, theirs, resamples=200, seed=5).p == 2 * (beyond + 1) / 201
    assert difference(theirs, ours, resamples=200, seed=5).p == 2 * (beyond + 1) / 201


def test_the_p_of_a_permutation_test_does_not_depend_on_the_seed() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = sample(rng.random(400) < 0.64), sample(rng.random(400) < 0.56)
    assert len({difference(ours, theirs, resamples=50, seed=seed).p for seed in range(5)}) == 1


def test_cases_that_are_equal_do_not_change_p() -> None:
    gaps = np.array([3.0, 1, 2, 4, -1, 2])
    assert permutation_test(gaps, np.zeros(6)) == permutation_test(np.append(gaps, 0), np.zeros(7))


def test_the_mean_over_seeds_is_tested_case_by_case() -> None:
    rng = np.random.default_rng(0)
    found = rng.random((4, 60)) < np.array([[0.7], [0.6], [0.5], [0.5]])

    def row(label: str, *columns: "np.ndarray") -> Row:  # type: ignore[type-arg]
        results = (
            Result("t", label, {"accuracy": MeanOf("right")}, {"right": right}, 1.0 - right, lambda _: None)  # type: ignore[arg-type,return-value]
            for right in columns
        )
        return Row(label, tuple(results))

    gap = row("ours", *found[:2]).against(row("theirs", *found[2:]))
    assert gap.p == permutation_test(found[:2].mean(axis=0), found[2:].mean(axis=0))
    assert gap.value == pytest.approx(found[:2].mean() - found[2:].mean())


def test_a_p_of_exactly_5_percent_shows_no_difference() -> None:
    assert Difference(1.0, 0.5, 1.5, p=0.05).verdict == "no difference shown"
    assert Difference(1.0, 0.5, 1.5, p=0.0499).verdict == "better"


def test_an_interval_lies_between_the_2nd_and_97th_percentile() -> None:
    values = Sample(median, {"value": np.random.default_rng(4).normal(size=60)})
    resampled = [values.value_at(positions) for positions in values.resamples(1000, seed=0)]
    found = estimate(values)
    assert (found.low, found.high) == (np.quantile(resampled, 0.025), np.quantile(resampled, 0.975))
