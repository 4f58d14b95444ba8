"""Calibration: scores to probabilities, and the threshold with the best F1."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import _SigmoidCalibration

import tercet
from tercet.data.sample import pairs
from tercet.errors import InputError, ModelError
from tercet.formats.calibration import read_calibration
from tercet.scorers.calibration import Calibration, Isotonic, Platt, best_f1, fit_calibration

MIN_SCORE = 3.0


@pytest.fixture
def labelled() -> list[tercet.Pair]:
    """The sample pairs; those with a score of at least 3 are matches."""
    return [tercet.Pair(pair.context, pair.candidate, float(pair.score >= MIN_SCORE)) for pair in pairs("en")]


def random_labels(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and labels drawn with the probability 1 / (1 + exp(-(2 score - 1)))."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=count)
    return scores, (rng.random(count) < 1 / (1 + np.exp(1 - 2 * scores))).astype(float)


def test_platt_worked_out_by_hand() -> None:
    curve = Platt(slope=np.log(3), intercept=0.0)
    np.testing.assert_allclose(curve(np.array([0.0, 1.0, -1.0])), [1 / 2, 3 / 4, 1 / 4])


def test_platt_recovers_the_curve_that_labels_were_drawn_from() -> None:
    curve = fit_calibration(*random_labels(20_000)).curve
    assert isinstance(curve, Platt)
    assert curve.slope == pytest.approx(2, rel=0.05)
    assert curve.intercept == pytest.approx(-1, rel=0.05)


def test_platt_equals_the_calibration_of_scikit_learn() -> None:
    scores, labels = random_labels(300)
    theirs = _SigmoidCalibration().fit(scores, labels).predict(scores)
    np.testing.assert_allclose(fit_calibration(scores, labels).probabilities(scores), theirs, atol=1e-4)


def test_perfectly_separated_scores_have_a_finite_slope() -> None:
    curve = fit_calibration([0.0, 0.1, 0.9, 1.0], [0, 0, 1, 1]).curve
    assert isinstance(curve, Platt)
    assert 0 < curve.slope < 100


def test_isotonic_worked_out_by_hand() -> None:
    found = fit_calibration([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], "isotonic")
    np.testing.assert_allclose(found.probabilities([1, 2, 2.5, 3, 4]), [0, 0.5, 0.5, 0.5, 1])
    np.testing.assert_allclose(found.probabilities([-9, 9]), [0, 1])  # flat beyond the ends


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_probabilities_rise_with_scores_and_stay_between_0_and_1(method: str) -> None:
    found = fit_calibration(*random_labels(500), method)  # type: ignore[arg-type]
    rising = found.probabilities(np.linspace(-1000, 1000, 999))
    assert rising.dtype == np.float32
    assert (np.diff(rising) >= 0).all()
    assert rising.min() >= 0
    assert rising.max() <= 1


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_probabilities_equal_the_share_of_matches(method: str) -> None:
    found = fit_calibration(*random_labels(5000), method)  # type: ignore[arg-type]
    scores, labels = random_labels(20_000, seed=1)
    probabilities = found.probabilities(scores)
    for low in np.arange(0, 1, 0.2):
        inside = (probabilities >= low) & (probabilities < low + 0.2)
        assert labels[inside].mean() == pytest.approx(probabilities[inside].mean(), abs=0.05)


def f1_of(scores: np.ndarray, labels: np.ndarray, threshold: float) -> float:
    predicted = scores >= threshold
    right = np.count_nonzero(predicted & labels)
    return 2 * right / (np.count_nonzero(predicted) + np.count_nonzero(labels))


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]) | st.floats(-9, 9), st.booleans()), min_size=1
    ).filter(lambda rows: any(label for _, label in rows))
)
def test_no_threshold_has_a_better_f1(rows: list[tuple[float, bool]]) -> None:
    scores, labels = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    threshold, f1 = best_f1(scores, labels)
    assert f1_of(scores, labels, threshold) == pytest.approx(f1)
    assert all(f1_of(scores, labels, other) <= f1 + 1e-12 for other in [*scores, -np.inf, threshold])


def test_equal_scores_get_the_same_decision() -> None:
    threshold, f1 = best_f1(np.array([1.0, 1.0, 1.0, 0.0]), np.array([True, False, False, False]))
    assert 0 < threshold <= 1
    assert f1 == 2 * 1 / (3 + 1)


def test_a_threshold_lies_halfway_between_the_scores_it_separates() -> None:
    assert best_f1(np.array([0.2, 0.8]), np.array([False, True]))[0] == pytest.approx(0.5)
    several = np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True])
    assert best_f1(*several)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_a_calibrated_scorer_has_probabilities_and_decisions_and_keeps_them_when_saved(
    method: str, minilm: tercet.BiEncoder, labelled: list[tercet.Pair], tmp_path: Path
) -> None:
    scorer = tercet.load("bi", device="cpu")
    with pytest.raises(InputError, match=r"tercet\.calibrate"):
        scorer.probability("a cat", ["a dog"])
    found = tercet.calibrate(scorer, labelled, method=method)  # type: ignore[arg-type]
    assert found.f1 > 0.8
    contexts, candidates = ([pair.context for pair in labelled], [pair.candidate for pair in labelled])
    probabilities = scorer.probability_pairs(contexts, candidates)
    assert np.abs(probabilities - [pair.score for pair in labelled]).mean() < 0.35
    decided = scorer.decide_pairs(contexts, candidates)
    assert np.mean(decided == [pair.score == 1 for pair in labelled]) > 0.75
    np.testing.assert_allclose(scorer.probability(contexts[0], candidates[:1]), probabilities[:1], atol=1e-5)
    loaded = tercet.load(scorer.save(tmp_path / "model"), device="cpu")
    assert loaded.calibration == found
    np.testing.assert_array_equal(loaded.probability_pairs(contexts, candidates), probabilities)
    assert loaded.fingerprint == minilm.fingerprint  # a calibration does not change vectors


OTHER_FIELDS = {"threshold": 0.5, "f1": 1.0, "pairs": 9}


@pytest.mark.parametrize(
    "content",
    [
        {"method": "platt", "slope": "steep", "intercept": 0},
        {"method": "platt", "slope": float("nan"), "intercept": 0},
        {"method": "platt", "slope": -1, "intercept": 0},
        {"method": "platt", "slope": 1},
        {"method": "oracle", "scores": [0, 1], "probabilities": [0, 1]},
        {"method": "isotonic", "scores": [0, 1], "probabilities": [0]},
        {"method": "isotonic", "scores": [], "probabilities": []},
        {"method": "isotonic", "scores": [0, 1], "probabilities": [0, 2.5]},
        {"method": "isotonic", "scores": [1, 0], "probabilities": [0, 1]},
        {"scores": [0, 1], "probabilities": [0, 1]},
    ],
)
def test_a_malformed_calibration_file_is_refused(content: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text(json.dumps(content | OTHER_FIELDS))
    with pytest.raises(ModelError, match="calibrate the model again"):
        read_calibration(tmp_path)


def test_small_probabilities_stay_above_zero() -> None:
    probabilities = Calibration(Platt(1.0, 0.0), 0.0, 1.0, 2).probabilities([-40, -60, -80])
    assert (np.diff(probabilities) < 0).all()
    assert probabilities.min() > 0


def test_scores_match_from_the_threshold_on() -> None:
    for curve in (Platt(1.0, 0.0), Isotonic((0.0, 1.0), (0.0, 1.0))):
        assert Calibration(curve, 0.5, 1.0, 2).matches([0.4, 0.5]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, 2.0], [1, 1], "needs matches and non-matches, got 2 pairs of one kind"),
        ([1.0, 2.0], [0, 3.5], "labels must be 1 .* or 0 .*, got 3.5"),
        ([1.0, np.nan], [0, 1], "NaN or infinite"),
        ([1.0, 1.0], [0, 1], "same score"),
        ([2.0, 1.0], [0, 1], "matches score no higher than non-matches"),
        ([1.0], [0, 1], "lists of equal length"),
    ],
)
def test_scores_and_labels_that_cannot_be_calibrated_are_refused(
    scores: list[float], labels: list[float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_calibration(scores, labels)


def test_a_pair_of_another_type_is_named(minilm: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match=r"pair 0 must be a tercet\.Pair\(.*\), got tuple"):
        tercet.calibrate(minilm, [("a", "b", 1)])  # type: ignore[list-item]


def test_an_empty_list_of_pairs_is_refused(minilm: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="there are no pairs"):
        tercet.calibrate(minilm, [])


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="method must be one of platt, isotonic, got 'beta'"):
        fit_calibration([0, 1], [0, 1], "beta")  # type: ignore[arg-type]


def test_probabilities_of_pairs_distinguish_contexts_from_candidates(
    tiny_folder: Callable[[str], Path],
) -> None:
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"))
    contexts, candidates = ["the cat sat on the mat", "old house"], ["a dog ran", "never"]
    scores = scorer.score_pairs(contexts, candidates)
    assert np.abs(scores - scorer.score_pairs(candidates, contexts)).min() > 1e-3
    scorer.calibration = Calibration(Platt(2.0, -1.0), float(scores.max()), 1.0, 2)
    expected = scorer.calibration.probabilities(scores)
    np.testing.assert_allclose(scorer.probability_pairs(contexts, candidates), expected, rtol=1e-5)
    assert scorer.decide_pairs(contexts, candidates).tolist() == (scores == scores.max()).tolist()


def test_the_threshold_between_neighbouring_numbers_still_separates_them() -> None:
    low = 0.3
    high = np.nextafter(low, 1)
    threshold, f1 = best_f1(np.array([low, high]), np.array([False, True]))
    assert (threshold, f1) == (high, 1.0)  # the number halfway would be rounded to one of them


def test_a_threshold_below_all_scores_is_the_lowest_score() -> None:
    assert best_f1(np.array([0.2, 0.8]), np.array([True, True])) == (0.2, 1.0)


def test_the_highest_of_equally_good_thresholds_is_chosen() -> None:
    scores, labels = np.array([5.0, 4, 3, 2]), np.array([True, False, False, True])
    assert best_f1(scores, labels) == (4.5, 2 / 3)  # so is 2 TP of 4 pairs: 4 / (4 + 2)


def test_a_curve_of_one_point_and_its_ends_0_and_1_are_accepted() -> None:
    np.testing.assert_array_equal(Isotonic((2.0,), (1.0,))(np.array([1.0, 3.0])), [1, 1])
    np.testing.assert_array_equal(Isotonic((0.0, 0.0, 1.0), (0.0, 0.0, 1.0))(np.array([0.5])), [0.5])


@pytest.mark.parametrize("slope", [0.0, -1.0, np.inf, np.nan])
def test_a_slope_that_does_not_rise_is_refused(slope: float) -> None:
    with pytest.raises(InputError, match="the curve must rise"):
        Platt(slope, 0.0)


@pytest.mark.parametrize("probabilities", [(0.0, 1.1), (-0.1, 1.0), (1.0, 0.0)])
def test_a_line_that_falls_or_leaves_0_to_1_is_refused(probabilities: tuple[float, ...]) -> None:
    with pytest.raises(
        InputError, match="the curve must rise, and its probabilities must lie between 0 and 1"
    ):
        Isotonic((0.0, 1.0), probabilities)


def test_matches_must_score_higher_than_non_matches_on_average() -> None:
    with pytest.raises(InputError, match="matches score no higher"):
        fit_calibration([1.0, 2.0, 1.0, 2.0], [0, 0, 1, 1])
    assert fit_calibration([1.0, 2.0, 1.1, 2.0], [0, 0, 1, 1]).pairs == 4


def test_scores_must_be_a_list() -> None:
    with pytest.raises(InputError, match=r"lists of equal length, got \(1, 2\) and \(1, 2\)"):
        fit_calibration([[0.0, 1.0]], [[0, 1]])


def test_platt_does_not_depend_on_the_unit_of_the_scores() -> None:
    scores, labels = random_labels(200)
    curve, scaled = fit_calibration(scores, labels).curve, fit_calibration(1000 * scores + 7, labels).curve
    np.testing.assert_allclose(scaled(1000 * scores + 7), curve(scores), atol=1e-6)


def test_two_pairs_are_enough_for_a_curve() -> None:
    found = fit_calibration([0.0, 1.0], [0, 1])
    np.testing.assert_allclose(found.probabilities([0.0, 1.0]), [1 / 3, 2 / 3], atol=1e-5)  # Platt's targets
    assert (found.threshold, found.f1) == (0.5, 1.0)
