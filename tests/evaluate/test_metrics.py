"""Ranking and correlation metrics."""

import ir_measures
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from tercet.evaluate.metrics import (
    accuracy,
    average_precision,
    gains_in_order,
    mean_reciprocal_rank,
    ndcg,
    normalized_ranks,
    pearson,
    ranks,
    recall_at,
    spearman,
)


def test_ranks_worked_out_by_hand() -> None:
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]], dtype=np.float32)
    assert ranks(scores, [2, 0]).tolist() == [2, 1]
    assert recall_at(ranks(scores, [2, 0]), 1) == 1 / 2
    assert recall_at(ranks(scores, [2, 0]), 2) == 2 / 2


def test_constant_scores_earn_no_recall_at_one() -> None:
    scores = np.zeros((4, 10), dtype=np.float32)
    assert ranks(scores, [0, 0, 3, 9]).tolist() == [10, 10, 10, 10]
    assert recall_at(ranks(scores, [0, 0, 3, 9]), 1) == 0


def test_nan_scores_rank_last() -> None:
    scores = np.full((2, 3), np.nan, dtype=np.float32)
    assert ranks(scores, [0, 1]).tolist() == [3, 3]


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


def test_accuracy_is_the_share_of_right_predictions() -> None:
    assert accuracy([0, 1, 2, 2], [0, 1, 1, 2.0]) == 0.75


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=3, max_size=30))
def test_pearson_equals_scipy(pairs: list[tuple[float, float]]) -> None:
    left, right = (np.round(side, 3) for side in zip(*pairs, strict=True))
    if len(set(left)) > 1 and len(set(right)) > 1:
        assert pearson(left, right) == pytest.approx(stats.pearsonr(left, right).statistic, abs=1e-9)


def test_gains_are_ordered_by_score_and_ties_count_against_the_model() -> None:
    assert gains_in_order([0.5, 0.9, 0.5, 0.1], [2, 0, 1, 3]).tolist() == [0, 1, 2, 3]
    assert gains_in_order([1.0, 1.0], [1, 0]).tolist() == [0, 1]


def test_a_nan_score_gains_nothing() -> None:
    assert gains_in_order([np.nan, 0.2], [1, 1]).tolist() == [0, 1]


def test_average_precision_worked_out_by_hand() -> None:
    assert average_precision(np.array([1.0, 0, 2, 0]), 3) == pytest.approx((1 / 1 + 2 / 3) / 3)
    assert average_precision(np.array([0.0]), 1) == 0


def test_ndcg_worked_out_by_hand() -> None:
    dcg = 0 / 1 + 2 / np.log2(3) + 1 / np.log2(4)
    ideal = 2 / 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert ndcg(np.array([0.0, 2, 1]), [1, 2, 0, 1], k=3) == pytest.approx(dcg / ideal)
    assert ndcg(np.array([0.0, 2, 1]), [1, 2, 0, 1], k=1) == 0


@given(st.data())
def test_retrieval_metrics_equal_trec_eval(data: st.DataObject) -> None:
    grades = data.draw(st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(0, 3), min_size=1))
    ranked = data.draw(st.permutations("abcdefghijklmn"))[: data.draw(st.integers(1, 14))]
    assume(any(grades.values()))
    scores = np.linspace(1, 0, len(ranked))
    qrels = [ir_measures.Qrel("q", key, grade) for key, grade in grades.items()]
    run = [ir_measures.ScoredDoc("q", key, score) for key, score in zip(ranked, scores, strict=True)]
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.AP], qrels, run)
    ordered = gains_in_order(scores, [grades.get(key, 0) for key in ranked])
    assert ndcg(ordered, list(grades.values()), k=10) == pytest.approx(
        theirs[ir_measures.nDCG @ 10], abs=1e-6
    )
    relevant = sum(grade > 0 for grade in grades.values())
    assert average_precision(ordered, relevant) == pytest.approx(theirs[ir_measures.AP], abs=1e-6)


def test_normalized_ranks_worked_out_by_hand() -> None:
    assert normalized_ranks([7.0, 3, 9]).tolist() == [0.5, 0, 1]
    assert normalized_ranks([1.0, 1, 5]).tolist() == [0.25, 0.25, 1]  # ranks 1.5, 1.5 and 3
    assert normalized_ranks([4.0, 2]).tolist() == [1, 0]
    assert normalized_ranks([4.0]).tolist() == [0]
