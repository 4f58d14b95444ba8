"""Certified search: how many candidates it scores, and where it stops."""

import numpy as np
import pytest

from tercet.index.approximate import ApproximateIndex
from tercet.index.base import Neighbors
from tercet.index.certified import certified_search
from tercet.index.exact import ExactIndex
from tercet.index.scan import promising_rows, rows_reaching
from tercet.index.scoring import TopK, exact_scores, offer_vectors, poly_scores, score_error
from tercet.records import Certainty, Codes, Floats, Ints

K = 5


def units(*shape: int, seed: int) -> Floats:
    vectors = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def as_codes(vectors: Floats) -> Codes:
    return Codes(vectors, np.ones(vectors.shape[:2], dtype=np.bool_))


def one_context(*codes: list[float]) -> Codes:
    return as_codes(np.array([codes], dtype=np.float32))


class WatchedIndex:
    """An exact index that remembers whose vectors were asked for, and how long the lists were."""

    exact = True

    def __init__(self, vectors: Floats) -> None:
        self.index = ExactIndex(vectors.shape[1])
        self.index.add(np.arange(len(vectors)), vectors)
        self.asked: list[int] = []
        self.depths: list[int] = []

    @property
    def max_norm(self) -> float:
        return self.index.max_norm

    def __len__(self) -> int:
        return len(self.index)

    def nearest(self, queries: Floats, k: int) -> Neighbors:
        self.depths.append(k)
        return self.index.nearest(queries, k)

    def vectors(self, ids: Ints) -> Floats:
        self.asked.extend(ids.tolist())
        return self.index.vectors(ids)


@pytest.fixture
def watched() -> WatchedIndex:
    return WatchedIndex(units(2000, 16, seed=1))


HARD = as_codes(units(1, 16, 16, seed=2))
"""With a small scale, no list proves the result: a score is far below the largest product."""
SCALE = 0.1


def test_scored_counts_every_candidate_whose_vector_was_read_once(watched: WatchedIndex) -> None:
    result = certified_search(watched, HARD, K, scale=SCALE, budget=200)
    assert result.scored.tolist() == [len(watched.asked)]
    assert len(set(watched.asked)) == len(watched.asked)


def test_scored_is_counted_for_each_context(watched: WatchedIndex) -> None:
    easy = np.repeat(HARD.vectors[:, :1], 16, axis=1)  # one code, 16 times: the first list proves the result
    both = certified_search(watched, as_codes(np.concatenate([HARD.vectors, easy])), K, scale=SCALE)
    assert both.scored.tolist() == [2000, 4 * K]
    assert both.certainty == (Certainty.CERTIFIED, Certainty.CERTIFIED)


def test_a_budget_equal_to_k_is_accepted_and_stops_after_the_first_lists(watched: WatchedIndex) -> None:
    result = certified_search(watched, HARD, K, scale=SCALE, budget=K)
    assert result.certainty == (Certainty.BUDGET_REACHED,)
    assert watched.depths == [4 * K]
    assert K <= result.scored[0] <= 16 * 4 * K


def test_a_proof_within_the_first_lists_counts_whatever_the_budget(watched: WatchedIndex) -> None:
    result = certified_search(watched, as_codes(HARD.vectors[:, :1]), K, budget=K)
    assert result.certainty == (Certainty.CERTIFIED,)
    assert result.scored.tolist() == [4 * K]


def test_a_search_stops_once_the_budget_is_reached_and_not_before(watched: WatchedIndex) -> None:
    first = int(certified_search(watched, HARD, K, scale=SCALE, budget=K).scored[0])
    spent = certified_search(watched, HARD, K, scale=SCALE, budget=first)
    assert (int(spent.scored[0]), spent.certainty) == (first, (Certainty.BUDGET_REACHED,))
    watched.depths.clear()
    more = certified_search(watched, HARD, K, scale=SCALE, budget=first + 1)
    assert watched.depths == [4 * K, 16 * K]  # lists grow fourfold
    assert more.scored[0] > first


def test_a_search_over_all_candidates_is_certified_whatever_the_budget(watched: WatchedIndex) -> None:
    result = certified_search(watched, HARD, 500, scale=SCALE, budget=500)  # lists of 4 x 500 are all
    assert result.certainty == (Certainty.CERTIFIED,)
    assert result.scored.tolist() == [2000]


def test_an_approximate_index_may_score_k_candidates_whatever_its_budget() -> None:
    index = ApproximateIndex(16, budget=1)
    index.add(np.arange(300), units(300, 16, seed=1))
    result = index.search(HARD, K, scale=SCALE)
    assert (result.ids[0] >= 0).all()
    assert result.scored[0] >= K


def test_an_exact_search_scores_only_those_that_can_be_among_the_best() -> None:
    index = ExactIndex(2)
    index.add(np.arange(4), np.float32([[4, 0], [3, 0], [2, 0], [1, 0]]))
    for k in (1, 2, 3):
        assert index.search(one_context([1, 0]), k).scored.tolist() == [k]
        assert index.search(one_context([1, 0], [0, 1]), k, scale=50.0).scored.tolist() == [k]
    assert index.search(one_context([1, 0]), 9).scored.tolist() == [4]


def test_an_empty_index_scores_nothing() -> None:
    assert ExactIndex(2).search(one_context([1, 0]), 3).scored.tolist() == [0]
    assert certified_search(ExactIndex(2), one_context([1, 0]), 3).scored.tolist() == [0]


def test_the_last_neighbour_of_a_list_is_its_cut_off() -> None:
    products = [1.0, 1.0, 1.0, 0.5, *[0.4] * 16]  # the first list has four
    watched = WatchedIndex(np.float32([[product] for product in products]))
    result = certified_search(watched, one_context([1]), 1)
    assert (result.certainty, result.scored.tolist()) == ((Certainty.CERTIFIED,), [4])


def test_a_list_whose_last_neighbour_ties_with_the_best_proves_nothing() -> None:
    products = [*[1.0] * 5, *[0.4] * 15]
    watched = WatchedIndex(np.float32([[product] for product in products]))
    result = certified_search(watched, one_context([1]), 1)
    assert (watched.depths, result.scored.tolist()) == ([4, 16], [16])


def test_a_candidate_whose_float32_score_is_too_low_by_the_error_is_found() -> None:
    """The float32 scores of the best candidate and of the next are off in opposite directions."""
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        vectors, code = np.float32(1e3 * rng.standard_normal((2, 8))), np.float32(rng.standard_normal((1, 8)))
        vectors[:, -1] -= (vectors.astype(np.float64) @ code[0]) / code[0, -1]  # scores of almost 0
        exact, rounded = exact_scores(code, vectors, 1.0), (vectors @ code.T)[:, 0]
        error = float(np.abs(rounded - exact).max())
        best = int(np.argmax(exact))
        found += bool(rounded[1 - best] - rounded[best] > error)  # and at most 2 * error
        top = TopK(1)
        offer_vectors(top, np.arange(2), vectors, code, scale=1.0, error=error)
        assert top.ids.tolist() == [best]
    assert found


class ForgetfulIndex(WatchedIndex):
    """An approximate index that never finds its last vector."""

    exact = False

    def nearest(self, queries: Floats, k: int) -> Neighbors:
        found = super().nearest(queries, k)
        lost = found.ids == len(self) - 1
        return Neighbors(np.where(lost, -1, found.ids), np.where(lost, -np.inf, found.products))


def test_lists_of_all_that_an_approximate_index_finds_are_certified_up_to_its_recall() -> None:
    forgetful = ForgetfulIndex(np.float32([[4], [3], [2], [1]]))
    result = certified_search(forgetful, one_context([1]), 2, budget=2)
    assert result.ids.tolist() == [[0, 1]]
    assert result.certainty == (Certainty.CERTIFIED_UP_TO_RECALL,)


def test_the_error_of_a_float32_score_never_exceeds_its_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        codes, vectors = (np.float32(rng.standard_normal((count, 1))) for count in (2, 50))
        rounded = poly_scores(vectors @ codes.T, 0.1)
        exact = poly_scores(vectors.astype(np.float64) @ codes.T.astype(np.float64), 0.1)
        assert np.abs(rounded - exact).max() <= score_error(codes, float(np.abs(vectors).max()), 0.1)


@pytest.mark.parametrize("known", [False, True])
def test_a_row_below_the_best_by_twice_the_error_is_promising(known: bool) -> None:
    """Its score may be too low by the error, and the best too high."""
    top = TopK(1)
    if known:
        top.offer(np.array([7]), np.float32([1.0]))
    rows = promising_rows(np.float32([[1.0], [0.5]]), np.ones(2, np.bool_), top, scale=1.0, error=0.25)
    assert rows.tolist() == [0, 1]


def test_a_product_equal_to_the_threshold_reaches_it() -> None:
    products = np.zeros((20, 2), dtype=np.float32)
    products[[3, 18], 1] = 0.5  # among whole runs of rows, and behind them
    assert rows_reaching(products, 0.5).tolist() == [3, 18]
