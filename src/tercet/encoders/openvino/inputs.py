"""The inputs of a graph: token ids in rows, and what follows from them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import openvino.opset15 as ops
from numpy.typing import NDArray

from tercet.encoders.openvino.blocks import MASKED, Node, constant, integers, positions, where
from tercet.encoders.openvino.rows import in_rows

IDS, TEXTS, PLACES, STARTS, LENGTHS, SEGMENTS, SPLITS, POOLED_FROM = (
    "ids",
    "texts",
    "places",
    "starts",
    "lengths",
    "segments",
    "splits",
    "pooled_from",
)
GRIDS = (IDS, TEXTS, PLACES, SEGMENTS)
"""Inputs ``[R, W]``, which have a number per token."""


Batch: TypeAlias = Mapping[str, NDArray[np.int32]]
"""The arrays of a batch by input."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The parameters of a graph and nodes that several parts of it use.

    ``ids``, ``texts`` and ``places`` are ``[R, W]``: the tokens of several texts in each row, the number of
    each token's text, which is -1 for padding, and its position there. ``starts`` and ``lengths`` ``[B]``
    say where each text begins in the flattened rows, and its number of tokens. Graphs of pairs also have
    ``segments`` ``[R, W]`` and ``splits`` ``[B]``, where the candidates begin. ``pooled_from`` ``[1]`` is the
    number of tokens of a prompt that are not pooled.
    """

    parameters: dict[str, Any]
    mask: Node
    """``[B, T]``, false for padding; T is the length of the longest text."""
    columns: Node
    """``[1, T]``: 0, 1, 2, ..."""

    def __getitem__(self, name: str) -> Node:
        return self.parameters[name]

    @property
    def is_candidate(self) -> Node:
        """``[B, T]``: whether a token belongs to the candidate of a pair."""
        return ops.greater_equal(self.columns, ops.unsqueeze(self[SPLITS], integers(1)))

    def by_text(self, states: Node) -> Node:
        """``[B, T, D]``: the states ``[R, W, D]`` of each text; those of padding mean nothing."""
        flat = ops.reshape(states, integers(-1, states.get_output_partial_shape(0)[2].get_length()), False)
        found = ops.add(ops.unsqueeze(self[STARTS], integers(1)), self.columns)  # [B, T]
        return ops.gather(flat, ops.select(self.mask, found, constant(0, np.int32)), integers(0))


def make_inputs(*others: str) -> Inputs:
    """The inputs that every graph has, and ``others``."""
    shapes = {POOLED_FROM: [1]} | {name: [-1, -1] for name in GRIDS}
    parameters = {
        name: ops.parameter(shapes.get(name, [-1]), np.int32, name)
        for name in (IDS, TEXTS, PLACES, STARTS, LENGTHS, *others)
    }
    for name, node in parameters.items():
        node.output(0).set_names({name})
    longest = ops.reduce_max(parameters[LENGTHS], integers(0), False)
    columns = positions(longest)
    mask = ops.less(columns, ops.unsqueeze(parameters[LENGTHS], integers(1)))
    return Inputs(parameters=parameters, mask=mask, columns=columns)


def arrays(ids: Sequence[Sequence[int]], others: Mapping[str, Sequence[Any]]) -> Batch:
    """The arrays of a batch; padding is 0."""
    lengths = np.array([len(text) for text in ids], dtype=np.int32)
    rows = in_rows(lengths.tolist())
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    where_to = np.repeat(rows.starts, lengths) + places

    def grid(values: Any, padding: int = 0) -> NDArray[np.int32]:
        filled = np.full(rows.number * rows.width, padding, dtype=np.int32)
        filled[where_to] = values
        return filled.reshape(rows.number, rows.width)

    found = {
        IDS: grid(np.concatenate(ids)),
        TEXTS: grid(np.repeat(np.arange(len(ids)), lengths), -1),
        PLACES: grid(places),
        STARTS: rows.starts.astype(np.int32),
        LENGTHS: lengths,
    }
    for name, values in others.items():
        found[name] = grid(np.concatenate(values)) if name in GRIDS else np.asarray(values, dtype=np.int32)
    return found


def text_bias(inputs: Inputs) -> Node:
    """``[R, 1, W, W]``: hides other texts from attention. Padding attends to padding, so no row is empty."""
    texts = inputs[TEXTS]
    same = ops.equal(ops.unsqueeze(texts, integers(2)), ops.unsqueeze(texts, integers(1)))
    return where(ops.unsqueeze(same, integers(1)), 0.0, MASKED)


def separate_bias(inputs: Inputs, weight: float) -> Node:
    """As ``text_bias``, with attention to the other text of a pair multiplied by ``weight``."""
    second = _is_second(inputs)
    differ = ops.not_equal(ops.unsqueeze(second, integers(2)), ops.unsqueeze(second, integers(1)))
    between = where(ops.unsqueeze(differ, integers(1)), math.log(weight) if weight else MASKED, 0.0)
    return ops.add(between, text_bias(inputs))


def separate_places(inputs: Inputs) -> Node:
    """``[R, W]``: the position of each token in its own text of a pair."""
    shift = ops.select(_is_second(inputs), _splits(inputs), constant(0, np.int32))
    return ops.subtract(inputs[PLACES], shift)


def _is_second(inputs: Inputs) -> Node:
    """``[R, W]``: whether a token belongs to the candidate of a pair."""
    return ops.greater_equal(inputs[PLACES], _splits(inputs))


def _splits(inputs: Inputs) -> Node:
    """``[R, W]``: where the candidate of each token's pair begins."""
    texts = ops.maximum(inputs[TEXTS], constant(0, np.int32))
    return ops.gather(inputs[SPLITS], texts, integers(0))
