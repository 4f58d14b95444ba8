"""Linear layers in int8: the arithmetic, and which layers are left out."""

import numpy as np
import openvino as ov
import openvino.opset15 as ops
import pytest

from tercet.encoders.openvino import processor
from tercet.encoders.openvino.blocks import linear
from tercet.encoders.openvino.quantized import (
    NARROW_WEIGHT_LEVELS,
    WEIGHT_LEVELS,
    InputRange,
    QuantizedWeights,
    quantized_matrix,
)
from tercet.encoders.openvino.ranges import choose_range
from tercet.encoders.openvino.sensitivity import bearable

RANDOM = np.random.default_rng(0)
INPUTS = (RANDOM.normal(size=(200, 32)) * np.geomspace(0.1, 30, 32) + 3).astype(np.float32)
MATRIX = RANDOM.normal(size=(16, 32)).astype(np.float32)
BIAS = RANDOM.normal(size=16).astype(np.float32)


def chosen() -> InputRange:
    return choose_range(INPUTS, (INPUTS.min(axis=0), INPUTS.max(axis=0)), MATRIX).range


def run(weights: QuantizedWeights, inputs: np.ndarray) -> np.ndarray:
    x = ops.parameter([-1, -1, 32], np.float32, "x")
    model = ov.Model([linear(x, weights, "layer")], [x], "linear")
    found: np.ndarray = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([inputs[None]])[
        0
    ][0]
    return found


def test_levels_and_steps_of_a_matrix() -> None:
    levels, steps = quantized_matrix(np.array([[1.0, -2.0], [0.5, 0.0]], np.float32), np.float32([1, 2]))
    assert steps.ravel().tolist() == pytest.approx([1 / 127, 0.5 / 127])
    assert levels.tolist() == [[127, -127], [127, 0]]


def test_an_int8_layer_equals_the_product_of_its_integers() -> None:
    scale, offset = ranges = chosen()
    weights = {"layer.weight": MATRIX, "layer.bias": BIAS}
    found = run(QuantizedWeights(weights, {"layer": ranges}, WEIGHT_LEVELS), INPUTS)
    levels = np.clip(np.rint(INPUTS * scale + offset), 0, 255)
    matrix = quantized_matrix(MATRIX, scale)
    expected = (levels - offset) @ (matrix.levels * matrix.steps).T + BIAS
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("highest", "most"), [(WEIGHT_LEVELS, 1e-3), (NARROW_WEIGHT_LEVELS, 3e-3)])
def test_an_int8_layer_is_near_the_exact_one(highest: int, most: float) -> None:
    weights = {"layer.weight": MATRIX, "layer.bias": BIAS}
    found = run(QuantizedWeights(weights, {"layer": chosen()}, highest), INPUTS)
    exact = INPUTS @ MATRIX.T + BIAS
    assert ((found - exact) ** 2).mean() / exact.var(axis=0).mean() < most


def test_a_layer_without_a_range_is_exact() -> None:
    found = run(QuantizedWeights({"layer.weight": MATRIX}, {}, WEIGHT_LEVELS), INPUTS)
    np.testing.assert_allclose(found, INPUTS @ MATRIX.T, rtol=1e-4, atol=1e-3)


def test_values_outside_of_the_range_are_clipped() -> None:
    ranges = InputRange(np.full(32, 1.0, np.float32), np.zeros(32, np.float32))
    weights = QuantizedWeights({"layer.weight": MATRIX}, {"layer": ranges}, WEIGHT_LEVELS)
    far, edge = (run(weights, np.full((1, 32), value, np.float32)) for value in (1e6, 255))
    np.testing.assert_allclose(far, edge, rtol=1e-5)


def test_ranges_have_a_margin() -> None:
    scale, offset = chosen()
    assert ((INPUTS * scale + offset).min(axis=0) > 5).all()
    assert ((INPUTS * scale + offset).max(axis=0) < 250).all()


def test_the_layers_with_the_largest_error_for_their_size_are_left_out() -> None:
    errors = {"a": 4.0, "b": 3.0, "c": 1.0}
    sizes = {"a": 10, "b": 1, "c": 10}
    assert bearable(errors, sizes, 8.0) == {"a", "b", "c"}
    assert bearable(errors, sizes, 5.0) == {"a", "c"}
    assert bearable(errors, sizes, 0.5) == set()


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", {"avx2", "avx512_vnni"}, WEIGHT_LEVELS),
        ("x86_64", {"avx2", "avx_vnni"}, WEIGHT_LEVELS),
        ("x86_64", {"avx2"}, NARROW_WEIGHT_LEVELS),
        ("AMD64", set(), NARROW_WEIGHT_LEVELS),
        ("aarch64", set(), WEIGHT_LEVELS),
    ],
)
def test_weights_are_narrower_where_sums_could_overflow(
    machine: str, flags: set[str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor.platform, "machine", lambda: machine)
    monkeypatch.setattr(processor, "processor_flags", lambda: frozenset(flags))
    assert processor.highest_weight() == expected


def test_a_processor_without_bf16_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "capabilities", lambda: frozenset({"FP32", "INT8"}))
    assert [processor.float_type(each) for each in ("fp32", "bf16", "int8")] == ["f32", "f32", "f32"]
    monkeypatch.setattr(processor, "capabilities", lambda: frozenset({"FP32", "BF16", "INT8"}))
    assert [processor.float_type(each) for each in ("fp32", "bf16", "int8")] == ["f32", "bf16", "bf16"]
