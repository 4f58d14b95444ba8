"""What a transformer computes in, and where."""

import torch
from torch import nn

from tercet.config import PRECISIONS, Precision
from tercet.errors import InputError
from tercet.inputs import check_choice
from tercet.runtime.linear import FastLinear


def set_precision(module: nn.Module, precision: Precision) -> None:
    """Make the linear layers fast, and compute in bfloat16 if asked to.

    They take nearly all the time. Embeddings, norms and the sums between layers stay in float32: that costs
    next to nothing and halves the error of a model cast to bfloat16 as a whole.
    """
    check_choice("precision", precision, PRECISIONS)
    for part in module.modules():
        if type(part) is nn.Linear:
            part.__class__ = FastLinear
        if isinstance(part, FastLinear) and precision == "bf16":
            part.to(torch.bfloat16)


def pick_device(device: str | None) -> torch.device:
    """The device asked for; without a wish, a GPU if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.zeros(1, device=picked).item()
    except (AssertionError, NotImplementedError, RuntimeError):  # torch asserts that it was built for a GPU
        raise InputError(f"device must be one that torch can use here, such as cpu, got {device!r}") from None
    return picked
