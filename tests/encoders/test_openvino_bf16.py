"""Positions and counts beyond 256, which bf16 cannot tell apart."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset15 as ops
import pytest

from tercet.encoders.openvino.architectures import Tokens, encoder_states
from tercet.encoders.openvino.inputs import IDS, PLACES, arrays, make_inputs, text_bias
from tercet.encoders.openvino.reductions import last
from tercet.formats.array_weights import read_array_transformer

LENGTH = 400


def test_the_last_of_many_tokens_is_found_in_bf16() -> None:
    states, mask = ops.parameter([1, -1, 4], np.float32, "states"), ops.parameter([1, -1], bool, "mask")
    compiled = ov.compile_model(ov.Model([last(states, mask)], [states, mask], "last"), "CPU", bf16())
    values = np.zeros((1, LENGTH, 4), np.float32)
    values[0, LENGTH - 3] = 7
    present = np.arange(LENGTH)[None] <= LENGTH - 3
    assert compiled([values, present])[0].tolist() == [[7, 7, 7, 7]]


def test_rotations_of_far_positions_are_as_exact_as_those_of_near_ones(
    tiny_folder: Callable[[str], Path],
) -> None:
    transformer = read_array_transformer(tiny_folder("modernbert"))
    settings = dict(transformer.settings, max_position_embeddings=LENGTH)
    ids = np.random.default_rng(0).integers(5, transformer.vocabulary, LENGTH).tolist()
    states = {}
    for precision, config in {"fp32": {"INFERENCE_PRECISION_HINT": "f32"}, "bf16": bf16()}.items():
        inputs = make_inputs()
        tokens = Tokens(inputs[IDS], inputs[PLACES], None, text_bias(inputs))
        output = inputs.by_text(encoder_states(settings, transformer.weights, tokens))
        model = ov.Model([output], list(inputs.parameters.values()), "states")
        states[precision] = ov.compile_model(model, "CPU", config)(dict(arrays([ids], {})))[0][0]
    errors = np.abs(states["bf16"] - states["fp32"]).mean(axis=-1)
    assert errors[300:].mean() < 1.5 * errors[:200].mean()


def bf16() -> dict[str, str]:
    if "BF16" not in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor has no bf16")
    return {"INFERENCE_PRECISION_HINT": "bf16"}
