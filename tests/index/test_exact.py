"""Exact search compared with a sort of all scores; cases that could break its bounds; storage; files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.errors import BrokenIndexError, InputError
from tercet.files.structured import read_json, write_json
from tercet.index.approximate import ApproximateIndex
from tercet.index.certified import certified_search
from tercet.index.dtypes import STORAGES, from_bfloat16, to_bfloat16
from tercet.index.exact import CODES_PER_SCAN, MANIFEST, ExactIndex
from tercet.index.quantized import dequantize, estimate, quantize
from tercet.index.scan import ROWS_PER_RUN, promising_rows, rows_reaching
from tercet.index.scoring import TopK, exact_scores, offer_vectors, poly_scores
from tercet.index.segment import Segment
from tercet.records import Certainty, Codes, Floats
from tercet.scorers.match import match
from tercet.settings.index import Storage

RNG = np.random.default_rng(7)


def random_units(*shape: int) -> Floats:
    vectors = RNG.standard_normal(shape, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def as_codes(vectors: Floats) -> Codes:
    return Codes(vectors, np.ones(vectors.shape[:2], dtype=np.bool_))


def index_of(vectors: Floats, storage: Storage = "float32") -> ExactIndex:
    index = ExactIndex(vectors.shape[1], storage=storage)
    index.add(np.arange(len(vectors)), vectors)
    return index


def exhaustive(codes: Floats, vectors: Floats, k: int, scale: float) -> tuple[list[int], Floats]:
    """Score every candidate and sort, ties by id."""
    scores = exact_scores(codes, vectors, scale)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return order.tolist(), scores[order]


def test_scores_equal_those_of_match() -> None:
    codes, vectors = random_units(2, 5, 24), random_units(300, 24)
    expected = match(torch.from_numpy(codes), torch.from_numpy(vectors), scale=3.0).numpy()
    for row in range(2):
        assert exact_scores(codes[row], vectors, 3.0) == pytest.approx(expected[row], abs=1e-6)
    assert poly_scores(np.float64([[1.0, 1.0 + np.log(3)]]), 1.0) == pytest.approx(
        [0.25 * 1 + 0.75 * (1 + np.log(3))]
    )


@pytest.mark.parametrize("count", [1, 4, 9])
@pytest.mark.parametrize("contexts", [1, 6])
def test_search_equals_a_sort_of_all_scores(count: int, contexts: int) -> None:
    vectors, codes = random_units(20_000, 32), random_units(contexts, count, 32)
    result = index_of(vectors).search(as_codes(codes), 12, scale=5.0)
    for row in range(contexts):
        ids, scores = exhaustive(codes[row], vectors, 12, 5.0)
        assert result.ids[row].tolist() == ids
        assert result.scores[row] == pytest.approx(scores, abs=1e-6)
    assert set(result.certainty) == {Certainty.CERTIFIED}
    assert result.scored.max() < 2000  # of 20,000


@st.composite
def hard_cases(draw: st.DrawFn) -> tuple[Floats, Floats, int, float]:
    """Vectors of few distinct numbers, so that ties are common; some are duplicates or zero."""
    width = draw(st.integers(1, 5))
    numbers = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.5, 1.0, 3.0])
    rows = st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=40)
    vectors = np.float32(draw(rows))
    vectors = np.repeat(vectors, draw(st.integers(1, 4)), axis=0)
    codes = np.float32(draw(rows))[: draw(st.integers(1, 8))]
    if draw(st.booleans()):
        codes[0] *= 100  # one code dominates
    return vectors, codes, draw(st.integers(1, 60)), draw(st.sampled_from([0.05, 1.0, 10.0]))


@settings(max_examples=2000, deadline=None)
@given(hard_cases())
def test_both_searches_equal_a_sort_of_all_scores_in_hard_cases(
    case: tuple[Floats, Floats, int, float],
) -> None:
    vectors, codes, k, scale = case
    index = index_of(vectors)
    ids, scores = exhaustive(codes, vectors, k, scale)
    for result in (
        index.search(as_codes(codes[None]), k, scale=scale),
        certified_search(index, as_codes(codes[None]), k, scale=scale),
    ):
        assert result.certainty == (Certainty.CERTIFIED,)
        assert result.ids[0, : len(ids)].tolist() == ids
        assert result.scores[0, : len(ids)].tolist() == scores.tolist()
        assert set(result.ids[0, len(ids) :].tolist()) <= {-1}
        assert set(result.scores[0, len(ids) :].tolist()) <= {-np.inf}


@settings(max_examples=1000, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    count=st.integers(2, 8),
    k=st.integers(1, 3),
    scale=st.sampled_from([0.1, 1.0, 4.0, 30.0]),
)
def test_certified_search_equals_a_sort_of_all_scores(seed: int, count: int, k: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    vectors, codes = (np.float32(rng.standard_normal((n, 3))) for n in (200, count))
    index = index_of(vectors)
    ids, scores = exhaustive(codes, vectors, k, scale)
    result = certified_search(index, as_codes(codes[None]), k, scale=scale)
    assert result.ids[0].tolist() == ids
    assert result.scores[0].tolist() == scores.tolist()


def test_the_proof_needs_few_candidates_if_one_code_dominates() -> None:
    vectors, codes = random_units(5000, 64), random_units(1, 8, 64)
    codes[0, 1:] *= 0.1
    result = certified_search(index_of(vectors), as_codes(codes), 5, scale=50.0)
    assert result.certainty == (Certainty.CERTIFIED,)
    assert result.ids[0].tolist() == exhaustive(codes[0], vectors, 5, 50.0)[0]
    assert result.scored[0] < 1000


@pytest.mark.parametrize("count", [1, 17, 513, 4096 + 512 + 9])
def test_the_last_rows_are_searched_too(count: int) -> None:
    vectors = 0.1 * random_units(count, 8)
    codes = random_units(1, 3, 8)
    vectors[-1] = codes[0, 1]
    assert index_of(vectors).search(as_codes(codes), 1, scale=20.0).ids.tolist() == [[count - 1]]


def test_a_search_that_reaches_its_budget_says_so() -> None:
    index = index_of(random_units(5000, 16))
    result = certified_search(index, as_codes(random_units(1, 16, 16)), 5, scale=0.1, budget=300)
    assert result.certainty == (Certainty.BUDGET_REACHED,)
    assert 300 <= result.scored[0] < 5000
    with pytest.raises(InputError, match="budget must be at least k = 5, got 3"):
        certified_search(index, as_codes(random_units(1, 2, 16)), 5, budget=3)


def test_contexts_can_have_different_numbers_of_codes() -> None:
    vectors, codes = random_units(500, 16), random_units(2, 4, 16)
    mask = np.array([[True, True, True, True], [True, False, False, False]])
    result = index_of(vectors).search(Codes(codes, mask), 3)
    assert result.ids[0].tolist() == exhaustive(codes[0], vectors, 3, 1.0)[0]
    assert result.ids[1].tolist() == exhaustive(codes[1, :1], vectors, 3, 1.0)[0]


def test_the_error_of_quantization_never_exceeds_its_bound() -> None:
    vectors = np.concatenate(
        [random_units(200, 48), 100 * random_units(50, 48), np.zeros((1, 48), np.float32)]
    )
    for code in (random_units(1, 48), 30 * random_units(1, 48), np.zeros((1, 48), np.float32)):
        query = quantize(code)
        products, bounds = estimate(query, quantize(vectors))
        errors = np.abs(products - (vectors.astype(np.float64) @ code[0].astype(np.float64)))
        assert (errors <= bounds).all()
        residual = code - dequantize(query.values, query.scales)  # the worst vector for this code
        products, bounds = estimate(query, quantize(residual))
        assert np.abs(products[0] - float(residual[0].astype(np.float64) @ code[0])) <= bounds[0]


def test_a_search_does_not_change_the_threads_of_torch() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for index in (ExactIndex(8), ApproximateIndex(8)):
            index.add(np.arange(2000), random_units(2000, 8))
            for count in (1, 5):
                index.search(as_codes(random_units(1, count, 8)), 3)
                assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_bfloat16_rounds_as_torch_does() -> None:
    values = np.concatenate(
        [RNG.standard_normal(500, dtype=np.float32), np.float32([0.0, 1.00390625, -3e-20])]
    )
    expected = torch.from_numpy(values).bfloat16().float().numpy()
    assert from_bfloat16(to_bfloat16(values)).tolist() == expected.tolist()


@pytest.mark.parametrize(("storage", "error"), [("float32", 0.0), ("bfloat16", 2e-3), ("int8", 5e-3)])
def test_storage_rounds_vectors_and_search_is_exact_over_them(storage: Storage, error: float) -> None:
    vectors = random_units(3000, 32)
    index = index_of(vectors, storage)
    stored = index.vectors(np.arange(3000))
    assert np.abs(stored - vectors).max() <= error
    for codes in (random_units(1, 1, 32), random_units(1, 6, 32)):
        result = index.search(as_codes(codes), 10, scale=4.0)
        assert result.ids[0].tolist() == exhaustive(codes[0], stored, 10, 4.0)[0]


def test_a_loaded_index_is_memory_mapped_and_finds_the_same(tmp_path: Path) -> None:
    for storage in STORAGES:
        index = index_of(random_units(2000, 16), storage)
        index.remove(np.arange(0, 2000, 7))
        codes = as_codes(random_units(3, 4, 16))
        loaded = ExactIndex.load(index.save(tmp_path / storage))
        assert len(loaded) == len(index)
        expected, result = index.search(codes, 5), loaded.search(codes, 5)
        assert result.ids.tolist() == expected.ids.tolist()
        assert result.scores.tolist() == expected.scores.tolist()
        assert isinstance(loaded.segments[0].ids.base, np.memmap)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = index_of(random_units(2000, 16)).save(tmp_path / "index")
    file = path / "000000" / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(BrokenIndexError, match=r"vectors\.npy is missing or truncated"):
        ExactIndex.load(path)


def test_many_small_additions_make_few_segments() -> None:
    index = ExactIndex(4)
    for number in range(300):
        index.add(np.array([number]), random_units(1, 4))
    assert len(index) == 300
    assert len(index.segments) < 12


def test_a_segment_finds_its_rows_by_ids_in_any_order() -> None:
    segment = Segment.of(np.array([5, 3, 9]), random_units(3, 4))
    assert segment.rows(np.array([9, 4, 5, 3, 10])).tolist() == [2, -1, 0, 1, -1]
    segment.alive[2] = False
    assert segment.rows(np.array([9, 3])).tolist() == [-1, 1]


def test_several_segments_are_searched_as_one_index() -> None:
    index, vectors = ExactIndex(8), random_units(5200, 8)
    for start, end in ((0, 4096), (4096, 4609), (4609, 4620), (4620, 5200)):
        index.segments.append(Segment.of(np.arange(start, end), vectors[start:end]))
    for codes in (random_units(1, 1, 8), random_units(1, 5, 8), random_units(6, 3, 8)):
        result = index.search(as_codes(codes), 7, scale=3.0)
        for row, context in enumerate(codes):
            assert result.ids[row].tolist() == exhaustive(context, vectors, 7, 3.0)[0]


def test_vectors_outside_the_range_of_float32_products_are_refused() -> None:
    index = index_of(random_units(5, 3))
    for factor in (1e20, 1e-20):
        with pytest.raises(
            InputError, match=r"numbers of about .* but they must be between 1e-12 and 1e[+]12"
        ):
            index.add(np.array([9]), np.float32(factor) * random_units(1, 3))
        with pytest.raises(InputError, match="code 0 has numbers of about"):
            index.search(as_codes(np.float32(factor) * random_units(1, 1, 3)), 1)
    with pytest.raises(InputError, match="code 0 contains NaN or infinity"):
        index.search(as_codes(np.full((1, 1, 3), np.nan, dtype=np.float32)), 1)
    with pytest.raises(InputError, match="scale must be"):
        index.search(as_codes(random_units(1, 2, 3)), 1, scale=0.0)


def test_an_index_of_another_format_is_refused(tmp_path: Path) -> None:
    path = index_of(random_units(5, 3)).save(tmp_path / "index")
    write_json(path / MANIFEST, read_json(path / MANIFEST) | {"format": 3})
    with pytest.raises(
        InputError, match=r'has index format 3, .* build it again in a new folder, with "tercet index build"'
    ):
        ExactIndex.load(path)


def test_a_context_can_have_more_codes_than_a_scan_takes() -> None:
    vectors, codes = random_units(50, 4), random_units(2, CODES_PER_SCAN + 1, 4)
    result = index_of(vectors).search(as_codes(codes), 3)
    for row in range(2):
        assert result.ids[row].tolist() == exhaustive(codes[row], vectors, 3, 1.0)[0]


def test_a_segment_is_at_least_twice_as_long_as_the_next() -> None:
    index = ExactIndex(4)
    lengths = []
    for start, count in ((0, 4), (4, 2), (6, 1), (7, 1)):
        index.add(np.arange(start, start + count), random_units(count, 4))
        lengths.append([len(segment) for segment in index.segments])
    assert lengths == [[4], [4, 2], [4, 2, 1], [8]]


@pytest.mark.parametrize("known", [[], [1.0]], ids=["from the block", "from earlier blocks"])
def test_a_row_is_promising_if_its_score_and_the_best_can_both_be_wrong_by_the_error(
    known: list[float],
) -> None:
    top = TopK(1)
    top.offer(np.arange(len(known)), np.float32(known))
    products = np.float32([[1.0], [0.8125], [0.6875]])  # with an error of 1/8, 1.0 may be 0.875
    rows = promising_rows(products, np.ones(3, dtype=np.bool_), top, scale=1.0, error=0.125)
    assert rows.tolist() == [0, 1]


def test_a_vector_is_scored_exactly_if_its_score_and_the_best_can_both_be_wrong_by_the_error() -> None:
    vectors, top = np.float32([[1.0], [0.8125], [0.6875]]), TopK(1)
    offered = list[list[int]]()
    top.offer = lambda ids, scores: offered.append(ids.tolist())  # type: ignore[method-assign]
    offer_vectors(top, np.arange(3), vectors, np.float32([[1.0]]), scale=1.0, error=0.125)
    assert offered == [[0, 1]]


def test_a_row_that_equals_the_threshold_reaches_it() -> None:
    products = np.zeros((ROWS_PER_RUN + 2, 2), dtype=np.float32)
    products[3, 1] = products[ROWS_PER_RUN, 0] = 0.5  # in a whole run, and after it
    assert rows_reaching(products, 0.5).tolist() == [3, ROWS_PER_RUN]


@pytest.mark.parametrize("norm", [0.25, 4.0])
def test_the_largest_norm_is_that_of_the_longest_vector_or_slightly_more(norm: float) -> None:
    vectors = norm * random_units(9, 16) * np.linspace(0.1, 1, 9, dtype=np.float32)[:, None]
    assert norm * (1 - 1e-6) <= Segment.of(np.arange(9), vectors).max_norm < 1.05 * norm
