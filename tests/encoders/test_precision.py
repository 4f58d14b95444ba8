"""Precision and device."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES
from torch import nn

import tercet
from tercet.encoders.precision import pick_device, set_precision
from tercet.errors import InputError


@pytest.mark.parametrize(("precision", "half"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_only_linear_layers_have_half_precision(precision: Any, half: torch.dtype) -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4))
    set_precision(model, precision)
    assert [weight.dtype for weight in model.parameters()] == [
        torch.float32,
        half,
        half,
        torch.float32,
        torch.float32,
    ]


def test_fp16_is_refused_on_a_cpu() -> None:
    with pytest.raises(InputError, match=r"fp16 needs a GPU: .* use bf16 or fp32"):
        pick_device("cpu", "fp16")
    with pytest.raises(InputError, match="fp16 needs a GPU"):
        tercet.load("bi", precision="fp16", device="cpu")


def test_a_scorer_in_fp16_scores_nearly_as_in_fp32_also_on_a_cpu(minilm: tercet.BiEncoder) -> None:
    expected = minilm.score_many(SENTENCES, SENTENCES)
    half = tercet.load("bi", device="cpu")
    half.set_precision("fp16")
    np.testing.assert_allclose(half.score_many(SENTENCES, SENTENCES), expected, atol=2e-3)
    assert half.fingerprint == minilm.fingerprint


@pytest.mark.parametrize("precision", ["fp8", "int8"])
def test_a_precision_that_torch_has_not_is_refused_with_the_choices(precision: str) -> None:
    with pytest.raises(InputError, match=f"precision must be one of fp32, bf16, fp16, got '{precision}'"):
        set_precision(nn.Linear(1, 1), precision)  # type: ignore[arg-type]


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(InputError, match="device must be available to torch, such as cpu, got 'toaster'"):
        pick_device("toaster")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_an_absent_gpu_is_refused() -> None:
    with pytest.raises(InputError, match="such as cpu, got 'cuda:0'"):
        pick_device("cuda:0")
