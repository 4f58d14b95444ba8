"""Linear layers in int8: unsigned activations, whose range each channel has for itself, and signed weights.

A channel c of an input becomes ``q = round(x * scale[c] + offset[c])`` from 0 to 255. The weights of that
channel are divided by the scale and the offset is moved into the bias, so the product of integers needs only
one factor per output. OpenVINO recognizes the quantized nodes and runs integer kernels.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import openvino.opset15 as ops

from tercet.encoders.openvino.blocks import LinearWeights, Node, Weights, constant, plain_linear, weight
from tercet.records import Floats

LEVELS = 255
"""The highest level of an activation."""

WEIGHT_LEVELS = 127
"""The highest level of a weight."""

NARROW_WEIGHT_LEVELS = 63
"""The same without VNNI: such a CPU adds two products in 16 bits, which would overflow."""


class InputRange(NamedTuple):
    """How an input of linear layers becomes integers, per channel, ``[D]``."""

    scale: Floats
    offset: Floats


class QuantizedMatrix(NamedTuple):
    """Integers ``[O, D]`` and what turns products with them into those of the float weights, ``[O, 1]``."""

    levels: Floats
    steps: Floats

    def shift(self, offset: Floats) -> Floats:
        """``[O]``: what the offsets of the inputs add to the outputs."""
        shift: Floats = ((self.levels * self.steps) @ offset).astype(np.float32)
        return shift


def quantized_matrix(matrix: Floats, scale: Floats, highest: int = WEIGHT_LEVELS) -> QuantizedMatrix:
    """The weights ``[O, D]`` for inputs that were multiplied by ``scale``, with one step per output."""
    scaled = matrix / scale
    steps = np.maximum(np.abs(scaled).max(axis=1, keepdims=True), np.float32(1e-30)) / np.float32(highest)
    return QuantizedMatrix(np.rint(scaled / steps), steps)


class QuantizedWeights(LinearWeights):
    """The weights of one graph. Linear layers whose input has a range are in int8, the others are not.

    Args:
        ranges: by the name of the first linear layer that reads an input.
        highest: the highest level of a weight.
    """

    def __init__(self, weights: Weights, ranges: Mapping[str, InputRange], highest: int) -> None:
        self._weights, self._ranges, self._highest = weights, ranges, highest
        self._inputs: dict[str, tuple[InputRange, Node] | None] = {}

    def __getitem__(self, name: str) -> Floats:
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def linear(self, x: Node, name: str) -> Node:
        """``x W^T + b``"""
        node = x.get_name()
        if node not in self._inputs:
            found = self._ranges.get(name)
            self._inputs[node] = None if found is None else (found, _quantized(x, found))
        source = self._inputs[node]
        if source is None:
            return plain_linear(x, self._weights, name)
        chosen, integers = source
        matrix = quantized_matrix(weight(self._weights, f"{name}.weight"), chosen.scale, self._highest)
        signed = ops.convert(constant(matrix.levels.astype(np.int8)), "f32")
        product = ops.matmul(integers, ops.multiply(signed, constant(matrix.steps)), False, True)
        bias = self._weights.get(f"{name}.bias", np.float32(0)) - matrix.shift(chosen.offset)
        return ops.add(product, constant(bias.reshape(1, 1, -1).astype(np.float32)))


def _quantized(x: Node, chosen: InputRange) -> Node:
    """The input as integers from 0 to ``LEVELS``."""
    scaled = ops.multiply(x, constant(chosen.scale.reshape(1, 1, -1)))
    shifted = ops.add(scaled, constant(chosen.offset.reshape(1, 1, -1)))
    low, high = (constant(np.full((1, 1, 1), level, np.float32)) for level in (0, LEVELS))
    return ops.fake_quantize(shifted, low, high, low, high, LEVELS + 1)
