"""``match``: equal to the formula of the paper, with its gradients, in little memory."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tercet.errors import InputError
from tercet.scorers.match import CPU_BLOCK, match


def literal(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
    """Humeau et al. (2020), section 4.4, literally: attend over the codes, sum, dot product."""
    if candidates.dim() == 2:
        candidates = candidates.unsqueeze(0)
    logits = scale * (candidates @ codes.transpose(1, 2))  # [B, C, M]
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(1), float("-inf"))
    contexts = logits.softmax(dim=-1) @ codes  # [B, C, D]: match never computes these
    return (contexts * candidates).sum(dim=-1)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Watch(TorchDispatchMode):
    """Remembers the sizes of all tensors that are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **kwargs or {})
        self.sizes.extend(x.numel() for x in [result] if isinstance(x, Tensor) and x._base is None)
        return result


def decreasing_mask(contexts: int, codes: int) -> Tensor:
    """A mask in which each context has one code less than the one before."""
    kept = (codes - torch.arange(contexts)).clamp(min=1)
    return torch.arange(codes) < kept.unsqueeze(1)


def test_a_score_worked_out_by_hand() -> None:
    codes = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    candidate = torch.tensor([[1.0, 1.0]])  # products 1 and 2
    weight = 1 / (1 + torch.e)  # of the first: e / (e + e^2)
    assert match(codes, candidate).item() == pytest.approx(weight * 1 + (1 - weight) * 2)
    sharp = 1 / (1 + torch.e**3)  # a = 3: e^3 / (e^3 + e^6)
    assert match(codes, candidate, scale=3.0).item() == pytest.approx(sharp * 1 + (1 - sharp) * 2)


@settings(deadline=None, max_examples=60)
@given(
    contexts=st.integers(1, 6),
    codes=st.integers(1, 9),
    candidates=st.integers(1, 12),
    own=st.booleans(),
    masked=st.booleans(),
    scale=st.sampled_from([0.1, 1.0, 4.0, 50.0]),
    seed=st.integers(0, 99),
)
def test_match_and_its_gradients_equal_the_paper(
    contexts: int, codes: int, candidates: int, own: bool, masked: bool, scale: float, seed: int
) -> None:
    mask = decreasing_mask(contexts, codes) if masked else None
    shape = (contexts, candidates, 5) if own else (candidates, 5)
    gradient = random(contexts, candidates, seed=seed + 1)
    results = []
    for function in (match, lambda y, c, mask, scale: literal(y, c, mask, scale)):
        inputs = [
            random(contexts, codes, 5, seed=seed).requires_grad_(),
            random(*shape, seed=seed + 2).requires_grad_(),
            torch.tensor(scale, dtype=torch.float64, requires_grad=True),
        ]
        scores = function(inputs[0], inputs[1], mask=mask, scale=inputs[2])
        gradients = torch.autograd.grad(scores, inputs, gradient, allow_unused=True)
        results.append([scores, *(torch.zeros(()) if g is None else g for g in gradients)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10, check_dtype=False)


@pytest.mark.parametrize("own", [False, True])
def test_blocks_equal_one_computation(own: bool) -> None:
    contexts, codes, candidates = 5, 64, 2100  # several blocks in both dimensions
    assert contexts * codes * candidates > 2 * CPU_BLOCK.products
    y, mask = random(contexts, codes, 6), decreasing_mask(contexts, codes)
    c = random(contexts, candidates, 6, seed=1) if own else random(candidates, 6, seed=1)
    ours, theirs = match(y, c, mask=mask, scale=2.0), literal(y, c, mask, 2.0)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    y.requires_grad_()
    c.requires_grad_()
    expected = torch.autograd.grad(literal(y, c, mask, 2.0).sin().sum(), [y, c])
    gradients = torch.autograd.grad(match(y, c, mask=mask, scale=2.0).sin().sum(), [y, c])
    for left, right in zip(gradients, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-10)


def test_one_code_is_the_dot_product() -> None:
    y, c = random(3, 1, 7), random(4, 7, seed=1)
    torch.testing.assert_close(match(y, c, scale=9.0), y[:, 0] @ c.T, rtol=1e-12, atol=1e-12)


def test_equal_codes_score_as_one_code() -> None:
    y, c = random(3, 1, 7), random(4, 7, seed=1)
    torch.testing.assert_close(match(y.expand(3, 5, 7), c), match(y, c), rtol=1e-12, atol=1e-12)


def test_a_score_lies_between_the_bounds_that_certify_a_search() -> None:
    y, c = random(8, 16, 6), random(50, 6, seed=1)
    largest = (c @ y.transpose(1, 2)).amax(dim=-1)  # [B, C]
    for scale in (0.5, 1.0, 4.0):
        scores = match(y, c, scale=scale)
        assert (scores <= largest + 1e-12).all()
        assert (scores >= largest - torch.log(torch.tensor(16.0)) / scale - 1e-12).all()


def test_masked_codes_do_not_change_the_score() -> None:
    y, c = random(1, 3, 4), random(5, 4, seed=1)
    mask = torch.tensor([[True, True, False]])
    expected = match(y[:, :2], c)
    torch.testing.assert_close(match(y, c, mask=mask), expected)
    y[:, 2] = 1e6
    torch.testing.assert_close(match(y, c, mask=mask), expected)


def test_huge_and_tiny_products_stay_finite() -> None:
    y, c = random(2, 8, 4).float(), random(5, 4, seed=1).float()
    for size in (1e-20, 1e9):
        scores = match(y * size, c, scale=10.0)
        assert torch.isfinite(scores).all()


def test_half_precision_is_computed_in_float32() -> None:
    y, c = random(2, 8, 16), random(5, 16, seed=1)
    halves = match(y.bfloat16(), c.bfloat16())
    assert halves.dtype == torch.float32
    torch.testing.assert_close(halves, literal(y.bfloat16().float(), c.bfloat16().float(), None, 1.0))


def test_autocast_does_not_change_the_scores() -> None:
    y, c = random(2, 8, 16).float(), random(5, 16, seed=1).float()
    expected = match(y, c)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(match(y, c), expected, rtol=0, atol=0)


def test_training_does_not_store_the_products() -> None:
    y, c = random(32, 64, 8).requires_grad_(), random(256, 8, seed=1).requires_grad_()
    stored = []

    def count(tensor: Tensor) -> Tensor:
        stored.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        match(y, c)
    assert max(stored) <= max(y.numel(), c.numel())  # not 32 x 256 x 64


def test_no_vector_is_computed_for_each_candidate() -> None:
    """No tensor is as large as a block of ``[B, C, D]``; blocks of ``[B, C, M]`` are allowed."""
    contexts, codes, candidates, width = 6, 4, 9000, 64
    y, c = random(contexts, codes, width).float(), random(candidates, width, seed=1).float()
    with Watch() as watch, torch.no_grad():
        match(y, c)
    # the arguments, the result, or a block of products
    assert max(watch.sizes) <= max(c.numel(), contexts * candidates, CPU_BLOCK.products)


def test_candidates_without_gradients_get_none() -> None:
    y, c = random(2, 3, 4).requires_grad_(), random(5, 4, seed=1)
    match(y, c).sum().backward()
    assert c.grad is None
    assert y.grad is not None


def test_candidates_get_gradients_if_the_codes_need_none() -> None:
    y, c = random(2, 3, 4), random(5, 4, seed=1).requires_grad_()
    (expected,) = torch.autograd.grad(literal(y, c, None, 1.0).sum(), c)
    (found,) = torch.autograd.grad(match(y, c).sum(), c)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_without_contexts_the_scores_are_empty() -> None:
    assert match(torch.zeros(0, 3, 4), torch.zeros(5, 4)).shape == (0, 5)


def test_a_mask_may_be_numeric() -> None:
    y, c, mask = random(2, 3, 4), random(5, 4, seed=1), torch.tensor([[1, 1, 0], [1, 1, 1]])
    assert torch.equal(match(y, c, mask=mask), match(y, c, mask=mask.bool()))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), 1e39])
def test_an_invalid_scale_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match="scale must be a number from 1e-06"):
        match(random(2, 3, 4), random(5, 4), scale=scale)


@pytest.mark.parametrize(
    ("codes", "candidates", "mask", "message"),
    [
        ((2, 3), (4, 3), None, r"codes must be \[B, M, D\]"),
        ((2, 0, 3), (4, 3), None, "at least one code"),
        ((2, 3, 4), (5, 6), None, r"with the width of the codes \(4\), got \[5, 6\]"),
        ((2, 3, 4), (3, 5, 4), None, r"as many rows as there are contexts \(2\), got 3"),
        ((2, 3, 4), (5, 4), (2, 4), r"mask must have the shape of the codes, \[2, 3\], got \[2, 4\]"),
        ((2, 3, 4), (5, 4), (2, 3), "every context needs at least one code that is not masked"),
    ],
)
def test_invalid_shapes_are_refused(
    codes: tuple[int, ...], candidates: tuple[int, ...], mask: tuple[int, ...] | None, message: str
) -> None:
    all_masked = None if mask is None else torch.zeros(mask, dtype=torch.bool)
    with pytest.raises(InputError, match=message):
        match(torch.zeros(codes), torch.zeros(candidates), mask=all_masked)


@pytest.mark.parametrize("codes", [64, 128, 256])
def test_products_are_computed_in_blocks_that_fit_the_cache(codes: int) -> None:
    y, c = random(8, codes, 4), random(9000, 4, seed=1)
    with Watch() as watch, torch.no_grad():
        match(y, c)
    assert max(watch.sizes) <= CPU_BLOCK.products  # of 8 x 9,000 x codes


def test_codes_of_one_context_that_exceed_a_block_are_scored() -> None:
    codes, candidates = 70, 4200
    assert codes * CPU_BLOCK.most_candidates > CPU_BLOCK.products
    y, c = random(2, codes, 4), random(candidates, 4, seed=1)
    torch.testing.assert_close(match(y, c), literal(y, c, None, 1.0), rtol=1e-10, atol=1e-10)


def test_without_candidates_the_scores_are_empty() -> None:
    assert match(torch.zeros(2, 3, 4), torch.zeros(0, 4)).shape == (2, 0)
