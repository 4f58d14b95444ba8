"""Token states to what a scorer needs of them, as the last nodes of a graph.

The results are small, so that what follows (layers, norms, heads) is computed in numpy.
"""

from collections.abc import Callable

import numpy as np
import openvino.opset15 as ops

from tercet.encoders.openvino.blocks import MASKED, Node, as_float, constant, integers, where
from tercet.encoders.openvino.inputs import POOLED_FROM, Inputs
from tercet.records import Floats
from tercet.settings.models import PoolingConfig, PoolingKind


def pooled(states: Node, inputs: Inputs, pooling: PoolingConfig) -> Node:
    """``[B, kinds * D]``: the poolings, side by side."""
    mask = inputs.mask if pooling.include_prompt else _without_prompt(inputs)
    kinds = [POOLINGS[kind](states, mask, pooling) for kind in pooling.kinds]
    return kinds[0] if len(kinds) == 1 else ops.concat(kinds, -1)


def code_vectors(states: Node, inputs: Inputs, codes: Floats, scale: float) -> Node:
    """``[B, M, D]``: learnt codes attend over the tokens."""
    scaled = constant((np.float32(scale) * codes)[None])  # [1, M, D]
    logits = ops.matmul(scaled, states, False, True)  # [B, M, T]
    hidden = where(ops.unsqueeze(inputs.mask, integers(1)), 0.0, MASKED)
    return ops.matmul(ops.softmax(ops.add(logits, hidden), -1), states, False, False)


def side_means(states: Node, inputs: Inputs) -> Node:
    """``[B, 2, D]``: the mean states of context and candidate of a pair."""
    second = inputs.is_candidate
    sides = (
        ops.logical_and(inputs.mask, ops.logical_not(second)),
        ops.logical_and(inputs.mask, second),
    )
    return ops.concat([ops.unsqueeze(mean(states, side), integers(1)) for side in sides], 1)


def first(states: Node, mask: Node) -> Node:
    """``[B, D]``: the state of the first token."""
    return _pick(states, ops.convert(mask, "i32"))


def last(states: Node, mask: Node) -> Node:
    """``[B, D]``: the state of the last token."""
    return _pick(states, _numbers(mask))


def mean(states: Node, mask: Node) -> Node:
    """``[B, D]``: the mean over the tokens."""
    weights = as_float(mask)
    return ops.divide(_total(states, weights), _count(weights))


def mean_sqrt(states: Node, mask: Node) -> Node:
    """``[B, D]``: the sum over the tokens, divided by the square root of their number."""
    weights = as_float(mask)
    return ops.divide(_total(states, weights), ops.sqrt(_count(weights)))


def weighted_mean(states: Node, mask: Node) -> Node:
    """``[B, D]``: the mean with weights 1, 2, 3, ... by position in the text."""
    ones = ops.add(ops.multiply(as_float(mask), constant(0.0, np.float32)), constant(1.0, np.float32))
    weights = ops.multiply(as_float(mask), ops.cum_sum(ones, constant(1, np.int64)))
    return ops.divide(_total(states, weights), _count(weights))


def mean_first(states: Node, mask: Node, tokens: int) -> Node:
    """``[B, D]``: the mean over the first ``tokens`` tokens."""
    counted = ops.cum_sum(as_float(mask), constant(1, np.int64))
    return mean(states, ops.logical_and(mask, ops.less_equal(counted, constant(float(tokens), np.float32))))


def maximum(states: Node, mask: Node) -> Node:
    """``[B, D]``: the maximum of each dimension over the tokens."""
    hidden = ops.unsqueeze(where(mask, 0.0, -np.inf), integers(2))
    return ops.reduce_max(ops.add(states, hidden), integers(1), False)


POOLINGS: dict[PoolingKind, Callable[[Node, Node, PoolingConfig], Node]] = {
    "first": lambda states, mask, _: first(states, mask),
    "last": lambda states, mask, _: last(states, mask),
    "max": lambda states, mask, _: maximum(states, mask),
    "mean": lambda states, mask, _: mean(states, mask),
    "mean_first": lambda states, mask, config: mean_first(states, mask, config.first_tokens),
    "mean_sqrt": lambda states, mask, _: mean_sqrt(states, mask),
    "weighted_mean": lambda states, mask, _: weighted_mean(states, mask),
}


def _without_prompt(inputs: Inputs) -> Node:
    """``[B, T]``: the mask without the prompt, unless nothing would be left."""
    kept = ops.logical_and(inputs.mask, ops.greater_equal(inputs.columns, inputs[POOLED_FROM]))
    left = ops.reduce_logical_or(kept, integers(1), True)
    return ops.select(left, kept, inputs.mask)


def _total(states: Node, weights: Node) -> Node:
    """``[B, D]``: the weighted sum; a product of matrices, which is faster than a sum of products."""
    product = ops.matmul(ops.unsqueeze(weights, integers(1)), states, False, False)
    return ops.squeeze(product, integers(1))


def _count(weights: Node) -> Node:
    """``[B, 1]``"""
    return ops.reduce_sum(weights, integers(1), True)


def _numbers(mask: Node) -> Node:
    """``[B, T]``: 1, 2, 3, ... where the mask is true, else 0; integers, because bf16 ends at 256."""
    present = ops.convert(mask, "i32")
    return ops.multiply(present, ops.cum_sum(present, constant(1, np.int64)))


def _pick(states: Node, ranks: Node) -> Node:
    """``[B, D]``: the state of the first token with the highest rank."""
    best = ops.topk(ranks, constant(1, np.int64), -1, "max", "value", stable=True)
    index = best.output(1)  # [B, 1]
    return ops.squeeze(ops.gather(states, index, integers(1), batch_dims=1), integers(1))
