"""Precision and device."""

import pytest
import torch
from torch import nn

from tercet.encoders.precision import pick_device, set_precision
from tercet.errors import InputError


def test_only_linear_layers_become_bf16() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4))
    set_precision(model, "bf16")
    assert [weight.dtype for weight in model.parameters()] == [
        torch.float32,
        torch.bfloat16,
        torch.bfloat16,
        torch.float32,
        torch.float32,
    ]


def test_an_unknown_precision_is_refused_with_the_choices() -> None:
    with pytest.raises(InputError, match="precision must be one of fp32, bf16, got 'fp8'"):
        set_precision(nn.Linear(1, 1), "fp8")  # type: ignore[arg-type]


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(InputError, match="device must be available to torch, such as cpu, got 'toaster'"):
        pick_device("toaster")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_an_absent_gpu_is_refused() -> None:
    with pytest.raises(InputError, match="such as cpu, got 'cuda:0'"):
        pick_device("cuda:0")
