"""Precision and device."""

import torch
from torch import nn

from tercet.encoders.linear import FastLinear
from tercet.errors import InputError
from tercet.inputs import check_choice
from tercet.settings.models import Precision

HALVES: dict[Precision, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}
TORCH_PRECISIONS: tuple[Precision, ...] = ("fp32", *HALVES)
"""int8 needs the OpenVINO runtime."""


def set_precision(module: nn.Module, precision: Precision) -> None:
    """Replace linear layers by fast ones, in half precision if requested.

    Linear layers take nearly all the time. Embeddings, norms and residual sums stay in float32, which costs
    almost nothing and halves the error of a model that is cast to bfloat16 as a whole.
    """
    check_choice("precision", precision, TORCH_PRECISIONS)
    for part in module.modules():
        if type(part) is nn.Linear:
            part.__class__ = FastLinear
        if isinstance(part, FastLinear) and precision in HALVES:
            part.to(HALVES[precision])


def pick_device(device: str | None, precision: Precision = "fp32") -> torch.device:
    """The requested device, or a GPU if there is one; it must be able to compute in ``precision``."""
    picked = _available(device)
    if precision == "int8":
        raise InputError('int8 needs the OpenVINO runtime: use runtime="openvino" without a device, or bf16')
    if picked.type == "cpu" and precision == "fp16":
        raise InputError(
            "fp16 needs a GPU: on a CPU, torch computes it several times slower than fp32; use bf16 or fp32"
        )
    return picked


def _available(device: str | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.zeros(1, device=picked).item()
    except (AssertionError, NotImplementedError, RuntimeError):  # AssertionError: torch without CUDA
        raise InputError(f"device must be available to torch, such as cpu, got {device!r}") from None
    return picked
