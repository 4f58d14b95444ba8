import pytest
import torch
from torch import nn

import tercet
from tercet.runtime.precision import pick_device, set_precision


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


def test_an_unknown_precision_is_named_with_the_choices() -> None:
    with pytest.raises(tercet.InputError, match="precision must be one of fp32, bf16, got 'fp8'"):
        set_precision(nn.Linear(1, 1), "fp8")  # type: ignore[arg-type]


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(tercet.InputError, match="device must be one that torch can use here"):
        pick_device("toaster")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(tercet.InputError, match="such as cpu, got 'cuda:0'"):
        pick_device("cuda:0")
