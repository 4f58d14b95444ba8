"""The inputs of a graph: padded token ids, and what follows from them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino.opset15 as ops

from tercet.encoders.openvino.blocks import MASKED, Node, constant, integers, positions, where

IDS, LENGTHS, SEGMENTS, STARTS, POOLED_FROM = "ids", "lengths", "segments", "starts", "pooled_from"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The parameters of a graph and nodes that several parts of it use.

    ``ids`` is ``[B, T]``; ``lengths`` ``[B]`` counts the tokens of each text. Graphs of pairs also have
    ``segments`` ``[B, T]`` and ``starts`` ``[B]``, where the candidates begin. ``pooled_from`` ``[1]`` is the
    number of tokens of a prompt that are not pooled.
    """

    parameters: dict[str, Any]
    mask: Node
    """``[B, T]``, false for padding."""
    places: Node
    """``[1, T]``: 0, 1, 2, ..."""

    def __getitem__(self, name: str) -> Node:
        return self.parameters[name]

    @property
    def is_candidate(self) -> Node:
        """``[B, T]``: whether a token belongs to the candidate of a pair."""
        return ops.greater_equal(self.places, ops.unsqueeze(self[STARTS], integers(1)))


def make_inputs(*others: str) -> Inputs:
    """The inputs ``ids``, ``lengths`` and ``others``."""
    shapes = {SEGMENTS: [-1, -1], STARTS: [-1], POOLED_FROM: [1]}
    parameters = {
        IDS: ops.parameter([-1, -1], np.int32, IDS),
        LENGTHS: ops.parameter([-1], np.int32, LENGTHS),
    } | {name: ops.parameter(shapes[name], np.int32, name) for name in others}
    for name, node in parameters.items():
        node.output(0).set_names({name})
    places = positions(parameters[IDS])
    mask = ops.less(places, ops.unsqueeze(parameters[LENGTHS], integers(1)))
    return Inputs(parameters=parameters, mask=mask, places=places)


def padding_bias(inputs: Inputs) -> Node:
    """``[B, 1, 1, T]``: hides padding from attention."""
    return where(ops.unsqueeze(inputs.mask, integers(1, 2)), 0.0, MASKED)


def separate_bias(inputs: Inputs, weight: float) -> Node:
    """``[B, 1, T, T]``: as ``padding_bias``, with attention to the other text multiplied by ``weight``."""
    second = inputs.is_candidate
    differ = ops.not_equal(ops.unsqueeze(second, integers(2)), ops.unsqueeze(second, integers(1)))
    between = where(ops.unsqueeze(differ, integers(1)), math.log(weight) if weight else MASKED, 0.0)
    return ops.add(between, padding_bias(inputs))


def separate_places(inputs: Inputs) -> Node:
    """``[B, T]``: the position of each token in its own text."""
    starts = ops.unsqueeze(inputs[STARTS], integers(1))
    shift = ops.select(inputs.is_candidate, starts, constant(0, np.int32))
    return ops.subtract(inputs.places, shift)
