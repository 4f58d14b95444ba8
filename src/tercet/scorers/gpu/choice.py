"""Which implementation of ``match`` a device uses, decided once by trying."""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from tercet.errors import SlowDeviceWarning
from tercet.scorers.gpu.formula import compiled_scores, plain_scores

MatchKind: TypeAlias = Literal["triton", "compiled", "plain"]
Match: TypeAlias = Callable[[Tensor, Tensor, Tensor | None, "float | Tensor"], Tensor]

AMPERE = (8, 0)
"""The first compute capability with bfloat16."""

TRITON_NEEDS = (7, 0)
"""The first compute capability that Triton supports, so that torch.compile works."""

TOLERANCE = 1e-4
"""Allowed difference of the trial's scores, which are about 1."""


def match_kind(device: torch.device) -> MatchKind:
    """``triton`` (one kernel), ``compiled`` (torch.compile), or ``plain`` (torch as it is)."""
    if device.type != "cuda":
        return "plain"
    index = torch.cuda.current_device() if device.index is None else device.index
    return _kind_of_gpu(index)


@cache
def _kind_of_gpu(index: int) -> MatchKind:
    if find_spec("triton") is None:
        return "plain"
    device = torch.device("cuda", index)
    capability = torch.cuda.get_device_capability(device)
    if capability >= AMPERE and agrees(_kernel, device, "the Triton kernel"):
        return "triton"
    if capability >= TRITON_NEEDS and agrees(compiled_scores, device, "torch.compile"):
        return "compiled"
    return "plain"


def agrees(match: Match, device: torch.device, name: str) -> bool:
    """Whether an implementation computes the scores of a small problem on a device.

    A driver, a compiler or a GPU that does not fit makes it fail or, worse, compute something else.
    """
    random = torch.Generator().manual_seed(0)
    codes, candidates = torch.randn(2, 20, 40, generator=random) / 6, torch.randn(70, 40, generator=random)
    mask = torch.arange(20) < torch.tensor([[20], [7]])
    expected = plain_scores(codes, candidates, mask, 2.0)
    try:
        with torch.inference_mode():
            found = match(codes.to(device), candidates.to(device), mask.to(device), 2.0).cpu()
    except Exception as error:  # whatever a compiler or a driver raises
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        _warn(f"{name} does not run on {device} ({reason}): match is slower")
        return False
    if torch.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE):
        return True
    _warn(f"{name} computes other scores on {device} than torch, so it is not used")
    return False


def _kernel(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
    from tercet.scorers.gpu.match import kernel_match  # imports Triton

    return kernel_match(codes, candidates, mask, scale)


def _warn(message: str) -> None:
    warnings.warn(message, SlowDeviceWarning, stacklevel=4)
