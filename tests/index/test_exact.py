"""Exact search, against a sort of all scores; the cases that break bounds; storage; folders."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.errors import BrokenIndexError, InputError
from tercet.index.approximate import ApproximateIndex
from tercet.index.certified import certified_search
from tercet.index.exact import ExactIndex
from tercet.index.scoring import exact_scores, poly_scores
from tercet.index.segment import Segment, Storage, from_bfloat16, to_bfloat16
from tercet.index.sketch import estimate, restore, sketch
from tercet.models.match import match
from tercet.records import Codes, Floats

RNG = np.random.default_rng(7)


def unit(*shape: int) -> Floats:
    drawn = RNG.standard_normal(shape, dtype=np.float32)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def codes_of(vectors: Floats) -> Codes:
    return Codes(vectors, np.ones(vectors.shape[:2], dtype=np.bool_))


def filled(vectors: Floats, storage: Storage = "float32") -> ExactIndex:
    index = ExactIndex(vectors.shape[1], storage=storage)
    index.add(np.arange(len(vectors)), vectors)
    return index


def exhaustive(codes: Floats, vectors: Floats, k: int, scale: float) -> tuple[list[int], Floats]:
    """Every candidate scored, sorted, equal ones by their ids."""
    scores = exact_scores(codes, vectors, scale)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return order.tolist(), scores[order]


def test_scores_are_those_of_match() -> None:
    codes, vectors = unit(2, 5, 24), unit(300, 24)
    wanted = match(torch.from_numpy(codes), torch.from_numpy(vectors), scale=3.0).numpy()
    for row in range(2):
        assert exact_scores(codes[row], vectors, 3.0) == pytest.approx(wanted[row], abs=1e-6)
    assert poly_scores(np.float64([[1.0, 1.0 + np.log(3)]]), 1.0) == pytest.approx(
        [0.25 * 1 + 0.75 * (1 + np.log(3))]
    )


@pytest.mark.parametrize("count", [1, 4, 9])
@pytest.mark.parametrize("contexts", [1, 6])
def test_search_equals_a_sort_of_all_scores(count: int, contexts: int) -> None:
    vectors, codes = unit(20_000, 32), unit(contexts, count, 32)
    found = filled(vectors).search(codes_of(codes), 12, scale=5.0)
    for row in range(contexts):
        ids, scores = exhaustive(codes[row], vectors, 12, 5.0)
        assert found.ids[row].tolist() == ids
        assert found.scores[row] == pytest.approx(scores, abs=1e-6)
    assert set(found.certainty) == {"certified"}
    assert found.scored.max() < 2000  # of 20,000


@st.composite
def hard_cases(draw: st.DrawFn) -> tuple[Floats, Floats, int, float]:
    """Few different numbers, so that scores are often equal; vectors that come twice or are zero."""
    width = draw(st.integers(1, 5))
    numbers = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.5, 1.0, 3.0])
    rows = st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=40)
    vectors = np.float32(draw(rows))
    vectors = np.repeat(vectors, draw(st.integers(1, 4)), axis=0)
    codes = np.float32(draw(rows))[: draw(st.integers(1, 8))]
    if draw(st.booleans()):
        codes[0] *= 100  # one dominates
    return vectors, codes, draw(st.integers(1, 60)), draw(st.sampled_from([0.05, 1.0, 10.0]))


@settings(max_examples=2000, deadline=None)
@given(hard_cases())
def test_both_searches_equal_a_sort_of_all_scores_in_every_case(
    case: tuple[Floats, Floats, int, float],
) -> None:
    vectors, codes, k, scale = case
    index = filled(vectors)
    ids, scores = exhaustive(codes, vectors, k, scale)
    for found in (
        index.search(codes_of(codes[None]), k, scale=scale),
        certified_search(index, codes_of(codes[None]), k, scale=scale),
    ):
        assert found.certainty == ("certified",)
        assert found.ids[0, : len(ids)].tolist() == ids
        assert found.scores[0, : len(ids)].tolist() == scores.tolist()
        assert set(found.ids[0, len(ids) :].tolist()) <= {-1}
        assert set(found.scores[0, len(ids) :].tolist()) <= {-np.inf}


@settings(max_examples=1000, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    count=st.integers(2, 8),
    k=st.integers(1, 3),
    scale=st.sampled_from([0.1, 1.0, 4.0, 30.0]),
)
def test_certified_search_goes_deep_enough(seed: int, count: int, k: int, scale: float) -> None:
    chance = np.random.default_rng(seed)
    vectors, codes = (np.float32(chance.standard_normal((n, 3))) for n in (200, count))
    index = filled(vectors)
    ids, scores = exhaustive(codes, vectors, k, scale)
    found = certified_search(index, codes_of(codes[None]), k, scale=scale)
    assert found.ids[0].tolist() == ids
    assert found.scores[0].tolist() == scores.tolist()


def test_the_proof_needs_few_candidates_where_one_code_leads() -> None:
    vectors, codes = unit(5000, 64), unit(1, 8, 64)
    codes[0, 1:] *= 0.1
    found = certified_search(filled(vectors), codes_of(codes), 5, scale=50.0)
    assert found.certainty == ("certified",)
    assert found.ids[0].tolist() == exhaustive(codes[0], vectors, 5, 50.0)[0]
    assert found.scored[0] < 1000


@pytest.mark.parametrize("count", [1, 17, 513, 4096 + 512 + 9])
def test_the_last_rows_are_looked_at_too(count: int) -> None:
    vectors = 0.1 * unit(count, 8)
    codes = unit(1, 3, 8)
    vectors[-1] = codes[0, 1]
    assert filled(vectors).search(codes_of(codes), 1, scale=20.0).ids.tolist() == [[count - 1]]


def test_a_spent_budget_is_said() -> None:
    index = filled(unit(5000, 16))
    found = certified_search(index, codes_of(unit(1, 16, 16)), 5, scale=0.1, budget=300)
    assert found.certainty == ("budget reached",)
    assert 300 <= found.scored[0] < 5000
    with pytest.raises(InputError, match="a budget of 3 candidates cannot give the 5 best"):
        certified_search(index, codes_of(unit(1, 2, 16)), 5, budget=3)


def test_contexts_may_have_different_numbers_of_codes() -> None:
    vectors, codes = unit(500, 16), unit(2, 4, 16)
    mask = np.array([[True, True, True, True], [True, False, False, False]])
    found = filled(vectors).search(Codes(codes, mask), 3)
    assert found.ids[0].tolist() == exhaustive(codes[0], vectors, 3, 1.0)[0]
    assert found.ids[1].tolist() == exhaustive(codes[1, :1], vectors, 3, 1.0)[0]


def test_a_sketch_is_never_farther_off_than_it_says() -> None:
    vectors = np.concatenate([unit(200, 48), 100 * unit(50, 48), np.zeros((1, 48), np.float32)])
    for code in (unit(1, 48), 30 * unit(1, 48), np.zeros((1, 48), np.float32)):
        products, margins = estimate(sketch(code), sketch(vectors))
        off = np.abs(products - (vectors.astype(np.float64) @ code[0].astype(np.float64)))
        assert (off <= margins).all()
        drawn = sketch(code)
        missed = code - restore(drawn.values, drawn.scales)  # the worst vector there can be for this code
        products, margins = estimate(drawn, sketch(missed))
        assert np.abs(products[0] - float(missed[0].astype(np.float64) @ code[0])) <= margins[0]


def test_a_search_leaves_the_threads_of_torch_alone() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for index in (ExactIndex(8), ApproximateIndex(8)):
            index.add(np.arange(2000), unit(2000, 8))
            for count in (1, 5):
                index.search(codes_of(unit(1, count, 8)), 3)
                assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_bfloat16_is_torchs() -> None:
    values = np.concatenate(
        [RNG.standard_normal(500, dtype=np.float32), np.float32([0.0, 1.00390625, -3e-20])]
    )
    wanted = torch.from_numpy(values).bfloat16().float().numpy()
    assert from_bfloat16(to_bfloat16(values)).tolist() == wanted.tolist()


@pytest.mark.parametrize(("storage", "off"), [("float32", 0.0), ("bfloat16", 2e-3), ("int8", 5e-3)])
def test_storage_rounds_vectors_and_search_is_exact_over_them(storage: Storage, off: float) -> None:
    vectors = unit(3000, 32)
    index = filled(vectors, storage)
    kept = index.vectors(np.arange(3000))
    assert np.abs(kept - vectors).max() <= off
    for codes in (unit(1, 1, 32), unit(1, 6, 32)):
        found = index.search(codes_of(codes), 10, scale=4.0)
        assert found.ids[0].tolist() == exhaustive(codes[0], kept, 10, 4.0)[0]


def test_a_loaded_index_is_mapped_and_finds_the_same(tmp_path: Path) -> None:
    for storage in ("float32", "bfloat16", "int8"):
        index = filled(unit(2000, 16), storage)
        index.remove(np.arange(0, 2000, 7))
        codes = codes_of(unit(3, 4, 16))
        loaded = ExactIndex.load(index.save(tmp_path / storage))
        assert len(loaded) == len(index)
        wanted, found = index.search(codes, 5), loaded.search(codes, 5)
        assert found.ids.tolist() == wanted.ids.tolist()
        assert found.scores.tolist() == wanted.scores.tolist()
        assert isinstance(loaded.segments[0].ids.base, np.memmap)


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = filled(unit(2000, 16)).save(tmp_path / "index")
    file = path / "000000" / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(BrokenIndexError, match=r"vectors\.npy is missing or not whole"):
        ExactIndex.load(path)


def test_many_small_additions_make_few_segments() -> None:
    index = ExactIndex(4)
    for number in range(300):
        index.add(np.array([number]), unit(1, 4))
    assert len(index) == 300
    assert len(index.segments) < 12


def test_a_segment_finds_its_rows_by_ids_in_any_order() -> None:
    segment = Segment.of(np.array([5, 3, 9]), unit(3, 4))
    assert segment.rows(np.array([9, 4, 5, 3, 10])).tolist() == [2, -1, 0, 1, -1]
    segment.alive[2] = False
    assert segment.rows(np.array([9, 3])).tolist() == [-1, 1]


def test_several_segments_of_any_length_are_one_index() -> None:
    index, every = ExactIndex(8), unit(5200, 8)
    for start, end in ((0, 4096), (4096, 4609), (4609, 4620), (4620, 5200)):
        index.segments.append(Segment.of(np.arange(start, end), every[start:end]))
    for codes in (unit(1, 1, 8), unit(1, 5, 8), unit(6, 3, 8)):
        found = index.search(codes_of(codes), 7, scale=3.0)
        for row, each in enumerate(codes):
            assert found.ids[row].tolist() == exhaustive(each, every, 7, 3.0)[0]


def test_numbers_that_float32_cannot_compare_are_refused() -> None:
    index = filled(unit(5, 3))
    for factor in (1e20, 1e-20):
        with pytest.raises(InputError, match="and float32 can compare those from"):
            index.add(np.array([9]), np.float32(factor) * unit(1, 3))
        with pytest.raises(InputError, match="code 0 has numbers of about"):
            index.search(codes_of(np.float32(factor) * unit(1, 1, 3)), 1)
    with pytest.raises(InputError, match="code 0 holds a number that is not finite"):
        index.search(codes_of(np.full((1, 1, 3), np.nan, dtype=np.float32)), 1)
    with pytest.raises(InputError, match="scale must be"):
        index.search(codes_of(unit(1, 2, 3)), 1, scale=0.0)
