"""The Triton kernels equal the plain formula; without a GPU, Triton interprets them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tercet.scorers.gpu.arithmetic import Blocks
from tercet.scorers.gpu.formula import plain_scores

pytest.importorskip("triton")
kernels = pytest.importorskip("tercet.scorers.gpu.match")

pytestmark = pytest.mark.slow

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = kernels.KernelOptions(blocks=Blocks(candidates=16, codes=16, width=16, warps=4, stages=2))
TYPES = [
    (torch.float32, torch.float32),
    (torch.float32, torch.bfloat16),
    (torch.float32, torch.float16),
    (torch.bfloat16, torch.bfloat16),
    (torch.float16, torch.float16),
    (torch.bfloat16, torch.float32),
    (torch.float16, torch.bfloat16),
]


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return numbers.to(DEVICE, dtype)


def prefix_mask(contexts: int, codes: int) -> Tensor:
    """A mask in which each context has one code less than the one before."""
    kept = (codes - torch.arange(contexts)).clamp(min=1)
    return (torch.arange(codes) < kept.unsqueeze(1)).to(DEVICE)


def expected(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """The formula in float64."""
    return plain_scores(codes.double(), candidates.double(), mask, scale)


def assert_equal(found: Tensor, wanted: Tensor, products: float = 1.0) -> None:
    """Equal but for the rounding of float32 sums of products of this size."""
    torch.testing.assert_close(found.double(), wanted.double(), rtol=2e-5, atol=2e-5 * products)


def poison_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers that are created without values hold NaN, so that what is not written shows."""
    empty, empty_like, new_empty = torch.empty, torch.empty_like, Tensor.new_empty

    def poisoned(tensor: Tensor) -> Tensor:
        return tensor.fill_(math.nan) if tensor.is_floating_point() else tensor

    monkeypatch.setattr(torch, "empty", lambda *args, **more: poisoned(empty(*args, **more)))
    monkeypatch.setattr(torch, "empty_like", lambda *args, **more: poisoned(empty_like(*args, **more)))
    monkeypatch.setattr(Tensor, "new_empty", lambda *args, **more: poisoned(new_empty(*args, **more)))


@pytest.mark.parametrize(("of_codes", "of_candidates"), TYPES, ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_scores_equal_the_formula_in_every_type(
    of_codes: torch.dtype, of_candidates: torch.dtype, own: bool
) -> None:
    codes = random(3, 20, 40, dtype=of_codes)
    candidates = random(*([3] if own else []), 37, 40, seed=1, dtype=of_candidates)
    mask = prefix_mask(3, 20)
    found = kernels.kernel_scores(codes, candidates, mask=mask, scale=0.7)
    assert found.dtype == torch.float32
    assert_equal(found, expected(codes, candidates, mask, 0.7), products=30)


@settings(deadline=None, max_examples=40)
@given(
    contexts=st.integers(1, 3),
    codes=st.integers(1, 40),
    candidates=st.integers(1, 40),
    width=st.integers(1, 40),
    own=st.booleans(),
    masked=st.booleans(),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_any_sizes_equal_the_formula(
    contexts: int, codes: int, candidates: int, width: int, own: bool, masked: bool, scale: float
) -> None:
    mask = prefix_mask(contexts, codes) if masked else None
    y = random(contexts, codes, width) / width**0.5
    c = random(*([contexts] if own else []), candidates, width, seed=1)
    found = kernels.kernel_scores(y, c, mask=mask, scale=scale, options=SMALL)
    assert_equal(found, expected(y, c, mask, scale), products=10)


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("masked", [False, True], ids=["all", "masked"])
@pytest.mark.parametrize("codes", [1, 5, 70])
def test_gradients_equal_those_of_the_formula(
    codes: int, masked: bool, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, c = random(3, codes, 20), random(*([3] if own else []), 90, 20, seed=1)
    mask = prefix_mask(3, codes) if masked else None
    wanted = [tensor.double().requires_grad_() for tensor in (y, c, torch.tensor(1.7, device=DEVICE))]
    given = [tensor.detach().float().requires_grad_() for tensor in wanted]
    outer = random(3, 90, seed=2)
    expected_gradients = torch.autograd.grad(
        plain_scores(wanted[0], wanted[1], mask, wanted[2]), wanted, outer.double(), allow_unused=True
    )
    poison_empty(monkeypatch)
    monkeypatch.setattr(kernels, "PRODUCTS_AT_ONCE", 90 * codes)  # one context at a time
    scores = kernels.kernel_match(given[0], given[1], mask, given[2])
    found = torch.autograd.grad(scores, given, outer)
    for ours, theirs in zip(found, expected_gradients, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-3)


def test_gradients_in_half_precision_have_the_types_of_the_arguments() -> None:
    y = random(2, 5, 16, dtype=torch.bfloat16).requires_grad_()
    c = random(9, 16, seed=1, dtype=torch.bfloat16).requires_grad_()
    found = torch.autograd.grad(kernels.kernel_match(y, c, None, 1.0).sum(), [y, c])
    wanted = [tensor.detach().double().requires_grad_() for tensor in (y, c)]
    theirs = torch.autograd.grad(plain_scores(*wanted, None, 1.0).sum(), wanted)
    for ours, other in zip(found, theirs, strict=True):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.double(), other, rtol=1e-2, atol=1e-2)


def test_every_score_is_written_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    poison_empty(monkeypatch)
    y, c = random(2, 17, 33), random(35, 33, seed=1)
    found = kernels.kernel_maxima(y, c, options=SMALL)
    assert_equal(found.scores, expected(y, c, None, 1.0), products=30)
    assert torch.isfinite(found.maxima).all()


def test_numbers_beyond_the_ends_of_rows_are_not_read() -> None:
    wide, tall = torch.full((50, 64), math.nan), torch.full((3, 30, 64), math.nan)
    wide[:35, :40], tall[:, :17, :40] = random(35, 40).cpu(), random(3, 17, 40, seed=1).cpu()
    c, y = wide.to(DEVICE)[:35, :40], tall.to(DEVICE)[:, :17, :40]
    found = kernels.kernel_scores(y, c, options=SMALL)
    assert_equal(found, expected(y, c, None, 1.0), products=30)


def test_candidates_in_another_order_of_memory_are_scored() -> None:
    y, c = random(2, 5, 20), random(20, 35, seed=1).T
    assert_equal(kernels.kernel_scores(y, c), expected(y, c, None, 1.0), products=20)


def test_the_best_of_each_block_is_found() -> None:
    y, c = random(2, 5, 20), random(35, 20, seed=1)
    found = kernels.kernel_maxima(y, c, options=SMALL)
    blocks = [found.scores[:, start : start + 16].amax(dim=1) for start in (0, 16, 32)]
    assert found.size == 16
    assert torch.equal(found.maxima, torch.stack(blocks, dim=1))


def test_a_nan_candidate_has_a_nan_score_and_its_block_is_seen() -> None:
    y, c = random(1, 5, 20), random(35, 20, seed=1)
    c[20, 3] = math.nan
    found = kernels.kernel_maxima(y, c, options=SMALL)
    assert found.scores.isnan().nonzero().tolist() == [[0, 20]]
    assert found.maxima.isinf().tolist() == [[False, True, False]]


@pytest.mark.parametrize("codes", [1, 5, 40])
def test_a_nan_code_makes_all_scores_nan(codes: int) -> None:
    y = random(2, codes, 20)
    y[1, codes - 1, 2] = math.nan
    scores = kernels.kernel_scores(y, random(9, 20, seed=1), options=SMALL)
    assert torch.isfinite(scores[0]).all()
    assert scores[1].isnan().all()


def test_masked_codes_may_be_nan() -> None:
    y, c, mask = random(1, 20, 20), random(9, 20, seed=1), prefix_mask(1, 20)
    mask[0, 3:] = False
    wanted = expected(y[:, :3], c, None, 1.0)
    y[0, 3:] = math.nan
    assert_equal(kernels.kernel_scores(y, c, mask=mask, options=SMALL), wanted, products=20)


def test_a_block_of_codes_may_be_masked_as_a_whole() -> None:
    y, c = random(1, 40, 20), random(9, 20, seed=1)
    mask = torch.zeros(1, 40, dtype=torch.bool, device=DEVICE)
    mask[0, 35] = True  # in the last of three blocks
    assert_equal(kernels.kernel_scores(y, c, mask=mask, options=SMALL), expected(y, c, mask, 1.0), 20)


def test_without_a_code_the_scores_are_nan() -> None:
    mask = torch.zeros(1, 5, dtype=torch.bool, device=DEVICE)
    assert kernels.kernel_scores(random(1, 5, 20), random(9, 20, seed=1), mask=mask).isnan().all()


@pytest.mark.parametrize("size", [1e-20, 1e9])
def test_huge_and_tiny_products_stay_finite(size: float) -> None:
    y, c = random(2, 8, 20) * size, random(9, 20, seed=1)
    found = kernels.kernel_scores(y, c, scale=10.0)
    torch.testing.assert_close(found.double(), expected(y, c, None, 10.0), rtol=1e-4, atol=1e-4 * size)


@pytest.mark.parametrize("of_codes", [torch.float32, torch.bfloat16])
def test_int8_candidates_are_scored_with_their_factors(of_codes: torch.dtype) -> None:
    y = random(2, 5, 20, dtype=of_codes)
    c = torch.randint(-127, 128, (35, 20), dtype=torch.int8, generator=torch.Generator().manual_seed(1))
    factors = random(35, seed=2).abs() / 100
    found = kernels.kernel_scores(y, c.to(DEVICE), row_scales=factors, scale=2.0)
    assert_equal(found, expected(y, c.to(DEVICE) * factors.unsqueeze(1), None, 2.0), products=10)


@pytest.mark.parametrize("arithmetic", ["ieee", "split", "tf32"])
def test_every_arithmetic_of_float32_is_close(arithmetic: str) -> None:
    y, c = random(2, 20, 40) / 6, random(35, 40, seed=1)
    found = kernels.kernel_scores(y, c, options=kernels.KernelOptions(arithmetic=arithmetic))
    error = (found.double() - expected(y, c, None, 1.0)).abs().max()
    assert error < (1e-2 if arithmetic == "tf32" else 1e-5)


def test_a_scale_in_memory_equals_a_number() -> None:
    y, c = random(2, 5, 20), random(9, 20, seed=1)
    in_memory = kernels.kernel_scores(y, c, scale=torch.tensor(3.0, device=DEVICE))
    assert torch.equal(in_memory, kernels.kernel_scores(y, c, scale=3.0))


@pytest.mark.parametrize(("contexts", "candidates"), [(0, 5), (2, 0)])
def test_nothing_is_scored_where_nothing_is(contexts: int, candidates: int) -> None:
    found = kernels.kernel_scores(random(contexts, 3, 4), random(candidates, 4))
    assert found.shape == (contexts, candidates)
