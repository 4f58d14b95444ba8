"""Vectors on a device, in few bits: the same results as an exact search of the full vectors."""

from typing import Any

import numpy as np
import pytest
import torch

from tercet.arrays import unit_vectors
from tercet.errors import InputError
from tercet.index.base import SearchResult
from tercet.index.scoring import TopK, exact_scores, score_growth
from tercet.records import Codes, Floats
from tercet.scorers.codes import CodeTensors
from tercet.scorers.gpu.vectors import DeviceVectors, check_room
from tercet.settings.index import DEVICE_STORAGES

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def codes_of(contexts: int, number: int, width: int = 24) -> Codes:
    mask = np.arange(number) < (number - np.arange(contexts)).clip(min=1)[:, None]
    return Codes(random(contexts, number, width, seed=1), mask)


def best_of_all(codes: Codes, vectors: Floats, k: int, scale: float) -> list[tuple[list[int], list[float]]]:
    """Every vector scored in float64."""
    found = []
    for one, mask in zip(codes.vectors, codes.mask, strict=True):
        top = TopK(k)
        top.offer(np.arange(len(vectors)), exact_scores(one[mask], vectors, scale))
        found.append((top.ids.tolist(), top.scores.tolist()))
    return found


def rows(result: SearchResult) -> list[tuple[list[int], list[float]]]:
    return [(ids.tolist(), scores.tolist()) for ids, scores in zip(result.ids, result.scores, strict=True)]


@pytest.mark.parametrize("storage", DEVICE_STORAGES)
@pytest.mark.parametrize("number", [1, 6])
@pytest.mark.parametrize("scale", [0.3, 20.0])
def test_a_search_in_few_bits_equals_one_in_float64(storage: Any, number: int, scale: float) -> None:
    vectors, codes = random(3000, 24), codes_of(3, number)
    found = DeviceVectors(vectors, device=DEVICE, storage=storage).search(codes, 10, scale=scale)
    assert rows(found) == best_of_all(codes, vectors, 10, scale)
    assert all(each.value == "certified" for each in found.certainty)


@pytest.mark.parametrize("storage", DEVICE_STORAGES)
def test_no_score_is_off_by_more_than_the_bound(storage: Any) -> None:
    vectors, codes = random(500, 24) * 10.0 ** np.arange(-2, 3).repeat(100)[:, None], codes_of(1, 6)
    vectors = vectors.astype(np.float32)
    kept = DeviceVectors(vectors, device=DEVICE, storage=storage)
    tensors = CodeTensors(torch.from_numpy(codes.vectors).to(DEVICE), torch.from_numpy(codes.mask).to(DEVICE))
    for scale in (0.01, 1.0, 30.0):
        rounded = kept.scores(tensors, scale=scale)[0].cpu().numpy()
        off = np.abs(rounded - exact_scores(codes.vectors[0], vectors, scale)).max()
        assert off <= kept._score_error(codes.vectors[0], scale)


def test_the_growth_of_an_error_is_bounded_for_steep_and_flat_attention() -> None:
    rng = np.random.default_rng(0)
    for count in (2, 5, 64):
        for scale in (0.1, 1.0, 10.0, 100.0):
            products = rng.standard_normal((200, count))
            weights = np.exp(scale * (products - products.max(axis=1, keepdims=True)))
            weights /= weights.sum(axis=1, keepdims=True)
            score = (weights * products).sum(axis=1, keepdims=True)
            slopes = np.abs(weights * (1 + scale * (products - score))).sum(axis=1)
            spread = float(np.ptp(products, axis=1).max())
            assert slopes.max() <= score_growth(count, scale=scale, spread=spread)


def test_rounding_decides_nothing_even_among_near_duplicates() -> None:
    vectors = np.repeat(unit_vectors(random(40, 24)), 50, axis=0)
    vectors += 1e-4 * random(*vectors.shape, seed=2)  # below the rounding of int8
    codes = codes_of(2, 4)
    found = DeviceVectors(vectors, device=DEVICE, storage="int8").search(codes, 5)
    assert rows(found) == best_of_all(codes, vectors, 5, 1.0)


def test_equal_vectors_are_found_in_the_order_of_their_positions() -> None:
    vectors = np.ones((20, 24), dtype=np.float32)
    found = DeviceVectors(vectors, device=DEVICE, storage="int8").search(codes_of(1, 1), 3)
    assert found.ids.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(("count", "k"), [(0, 3), (2, 3), (1, 1)])
def test_fewer_vectors_than_k_are_all_found(count: int, k: int) -> None:
    found = DeviceVectors(random(count, 24), device=DEVICE).search(codes_of(1, 2), k)
    assert sorted(number for number in found.ids[0].tolist() if number >= 0) == list(range(count))


def test_vectors_that_are_left_out_are_not_found() -> None:
    vectors, codes = random(100, 24), codes_of(1, 2)
    alive = np.arange(100) % 2 == 0
    top = TopK(5)
    DeviceVectors(vectors, device=DEVICE).offer(
        np.arange(100) + 7, [codes.vectors[0]], [top], scale=1.0, alive=alive
    )
    (ids, _), *_ = best_of_all(codes, vectors[::2], 5, 1.0)
    assert top.ids.tolist() == [2 * number + 7 for number in ids]


def test_few_bits_need_little_memory() -> None:
    sizes = {
        each: DeviceVectors(random(100, 24), device="cpu", storage=each).nbytes for each in DEVICE_STORAGES
    }
    assert sizes == {"float32": 9600, "bfloat16": 4800, "float16": 4800, "int8": 2400 + 400}


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones(3, dtype=np.float32), r"shape \[C, D\], got \[3\]"),
        (np.ones((3, 4)), "must be float32, got float64"),
    ],
)
def test_arrays_of_another_form_are_refused(vectors: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DeviceVectors(vectors, device="cpu")


def test_nan_is_refused() -> None:
    vectors = random(5, 24)
    vectors[3, 1] = np.nan
    with pytest.raises(Exception, match="1 of 5 are NaN"):
        DeviceVectors(vectors, device="cpu")


def test_numbers_beyond_float16_are_refused() -> None:
    with pytest.raises(InputError, match="exceed float16, which ends at 65,504: use the storage bfloat16"):
        DeviceVectors(random(5, 24) * 1e6, device="cpu", storage="float16")


def test_more_vectors_than_memory_are_refused_with_the_size() -> None:
    with pytest.raises(
        InputError, match=r"need 76.8 GB in bfloat16 .* cuda:0 has 40.0 GB free: use the storage"
    ):
        check_room((100_000_000, 384), 40_000_000_000, "bfloat16", name="cuda:0")
    check_room((100_000_000, 384), 41_000_000_000, "int8", name="cuda:0")


@pytest.mark.parametrize(("shape", "message"), [((1, 2, 23), "codes must have 24 numbers, got 23")])
def test_codes_of_another_model_are_refused(shape: tuple[int, ...], message: str) -> None:
    kept = DeviceVectors(random(5, 24), device=DEVICE)
    codes = CodeTensors(
        torch.ones(shape, device=DEVICE), torch.ones(shape[:2], dtype=torch.bool, device=DEVICE)
    )
    with pytest.raises(InputError, match=message):
        kept.scores(codes)
    with pytest.raises(InputError, match="codes must be on"):
        kept.scores(CodeTensors(*(each.to("meta") for each in codes)))
