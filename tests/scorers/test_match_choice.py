"""How a GPU's implementation of ``match`` is chosen: pure functions, and a trial that must agree."""

import pytest
import torch
from torch import Tensor

from tercet.errors import InputError, SlowDeviceWarning
from tercet.scorers.gpu.arithmetic import choose_arithmetic, choose_blocks
from tercet.scorers.gpu.choice import agrees, match_kind
from tercet.scorers.gpu.formula import plain_scores
from tercet.scorers.match import match

CPU = torch.device("cpu")
FLOAT, BFLOAT, HALF, BYTE = torch.float32, torch.bfloat16, torch.float16, torch.int8


@pytest.mark.parametrize(
    ("codes", "candidates", "arithmetic"),
    [
        (BFLOAT, BFLOAT, "native"),
        (HALF, HALF, "native"),
        (BFLOAT, BYTE, "native"),
        (FLOAT, BFLOAT, "split_codes"),
        (FLOAT, BYTE, "split_codes"),
        (HALF, BFLOAT, "split_codes"),
        (FLOAT, HALF, "split"),
        (BFLOAT, HALF, "split"),
        (FLOAT, FLOAT, "split"),
        (BFLOAT, FLOAT, "split"),
    ],
)
def test_no_arithmetic_rounds_a_product(codes: torch.dtype, candidates: torch.dtype, arithmetic: str) -> None:
    assert choose_arithmetic(codes, candidates) == arithmetic


def test_tf32_is_used_only_for_float32_and_on_request() -> None:
    assert choose_arithmetic(FLOAT, FLOAT, tf32=True) == "tf32"
    assert choose_arithmetic(FLOAT, BFLOAT, tf32=True) == "split_codes"
    assert choose_arithmetic(BFLOAT, BFLOAT, tf32=True) == "native"


@pytest.mark.parametrize("codes", [1, 16, 17, 64, 65, 360, 5000])
@pytest.mark.parametrize("candidates", [1, 100, 10**7])
def test_blocks_are_powers_of_two_and_no_wider_than_needed(codes: int, candidates: int) -> None:
    blocks = choose_blocks(1, codes, candidates, candidate_bytes=2)
    assert blocks.codes == max(16, min(128, 1 << (codes - 1).bit_length()))
    assert all(size & (size - 1) == 0 for size in blocks[:4])
    assert blocks.candidates == (128 if candidates == 10**7 else 64)


def test_a_gpu_with_little_shared_memory_loads_less_in_advance() -> None:
    large, small = (choose_blocks(1, 64, 1, candidate_bytes=2, shared_memory=size) for size in (2**18, 10**5))
    assert small.stages == 2 < large.stages


def test_a_cpu_uses_plain_torch() -> None:
    assert match_kind(CPU) == "plain"


def test_the_formula_equals_match() -> None:
    random = torch.Generator().manual_seed(0)
    codes, candidates = torch.randn(3, 7, 5, generator=random), torch.randn(11, 5, generator=random)
    mask = torch.arange(7) < torch.tensor([[7], [3], [1]])
    found = plain_scores(codes, candidates, mask, 2.0)
    torch.testing.assert_close(found, match(codes, candidates, mask=mask, scale=2.0))


def test_an_implementation_that_agrees_is_accepted() -> None:
    assert agrees(plain_scores, CPU, "the formula")


def test_an_implementation_that_computes_other_scores_is_refused() -> None:
    def wrong(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
        return plain_scores(codes, candidates, None, scale)

    with pytest.warns(SlowDeviceWarning, match="computes other scores on cpu than torch, so it is not used"):
        assert not agrees(wrong, CPU, "the kernel")


def test_an_implementation_that_fails_is_refused_with_the_reason() -> None:
    def broken(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
        raise RuntimeError("no compiler\nand more")

    with pytest.warns(SlowDeviceWarning, match=r"does not run on cpu \(RuntimeError: no compiler\)"):
        assert not agrees(broken, CPU, "the kernel")


def test_arguments_on_several_devices_are_refused() -> None:
    with pytest.raises(InputError, match="codes, candidates and mask must be on one device, got cpu, meta"):
        match(torch.ones(1, 2, 3), torch.ones(4, 3, device="meta"))
