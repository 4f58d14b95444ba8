"""``FastLinear``: equal to torch's own layer, also after its weights change."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from tercet.encoders.linear import FastLinear

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


@pytest.fixture(params=TOLERANCE, ids=str)
def layer(request: pytest.FixtureRequest) -> FastLinear:
    torch.manual_seed(0)
    return FastLinear(24, 40).to(request.param)


@pytest.mark.parametrize("shape", [(1, 24), (7, 24), (1, 300, 24), (3000, 24), (2, 3, 5, 24)], ids=str)
@torch.inference_mode()
def test_the_output_equals_the_plain_layer(layer: FastLinear, shape: tuple[int, ...]) -> None:
    states = torch.randn(shape)
    expected = linear(states.to(layer.weight.dtype), layer.weight, layer.bias)
    torch.testing.assert_close(layer(states), expected, atol=TOLERANCE[layer.weight.dtype], rtol=1e-2)


@torch.inference_mode()
def test_the_input_need_not_be_contiguous(layer: FastLinear) -> None:
    states = torch.randn(24, 9).T
    torch.testing.assert_close(layer(states), layer(states.contiguous()))


def test_a_layer_without_a_bias_equals_its_weights() -> None:
    layer = FastLinear(4, 3, bias=False)
    with torch.inference_mode():
        torch.testing.assert_close(layer(torch.eye(4)), layer.weight.T)


def test_a_changed_weight_is_used_at_once(layer: FastLinear) -> None:
    states = torch.ones(2, 24)
    with torch.inference_mode():
        layer(states)
    with torch.no_grad():
        layer.weight.zero_()
    with torch.inference_mode():
        torch.testing.assert_close(layer(states), layer.bias.expand(2, -1))


@pytest.mark.parametrize("fused", [False, True])  # a fused optimizer does not count versions
def test_weights_after_an_optimizer_step_are_used_at_once(fused: bool) -> None:
    layer = FastLinear(4, 2)
    states = torch.randn(3, 4)
    with torch.inference_mode():
        layer(states)
    layer(states).sum().backward()
    torch.optim.AdamW(layer.parameters(), lr=1.0, fused=fused).step()
    with torch.inference_mode():
        torch.testing.assert_close(layer(states), linear(states, layer.weight, layer.bias))


def test_loaded_weights_are_used_at_once(layer: FastLinear) -> None:
    other = FastLinear(24, 40).to(layer.weight.dtype)
    states = torch.randn(3, 24)
    with torch.inference_mode():
        layer(states)
        layer.load_state_dict(other.state_dict())
        torch.testing.assert_close(layer(states), other(states))


@torch.inference_mode()
def test_a_layer_created_in_inference_mode_equals_its_weights() -> None:
    layer = FastLinear(4, 3)
    torch.testing.assert_close(layer(torch.eye(4)), layer.weight.T + layer.bias)


def test_gradients_equal_the_plain_layer() -> None:
    fast, plain = FastLinear(4, 3), nn.Linear(4, 3)
    plain.load_state_dict(fast.state_dict())
    states = torch.randn(5, 4)
    for layer in (fast, plain):
        layer(states).square().sum().backward()
    torch.testing.assert_close(fast.weight.grad, plain.weight.grad)


def test_a_copy_keeps_its_own_weights(layer: FastLinear) -> None:
    with torch.inference_mode():
        before = layer(torch.ones(1, 24))
    copy = deepcopy(layer)
    with torch.no_grad():
        layer.weight.zero_()
    with torch.inference_mode():
        torch.testing.assert_close(copy(torch.ones(1, 24)), before)
