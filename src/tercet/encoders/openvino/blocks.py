"""The building blocks of transformers as nodes of an OpenVINO graph.

A function takes nodes and weights and returns a node. Shapes are ``[B, T, D]`` unless stated otherwise.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import openvino.opset15 as ops

from tercet.errors import ModelError, UnsupportedModelError
from tercet.records import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

Node: TypeAlias = Any
"""A node of a graph; OpenVINO's Python types say little more."""

Weights: TypeAlias = Mapping[str, Floats]
"""The weights of a model by name, as ``state_dict`` of transformers names them."""

MASKED = -1e9
"""Added to attention logits of padding: the weight is exactly 0, and no row becomes NaN."""

ACTIVATIONS = {
    "gelu": lambda x: ops.gelu(x, "erf"),
    "gelu_new": lambda x: ops.gelu(x, "tanh"),
    "gelu_pytorch_tanh": lambda x: ops.gelu(x, "tanh"),
    "relu": ops.relu,
    "sigmoid": ops.sigmoid,
    "silu": ops.swish,
    "swish": ops.swish,
    "tanh": ops.tanh,
}


def constant(values: "NDArray[Any] | float | int", dtype: Any = None) -> Node:
    """A constant."""
    array = np.asarray(values, dtype=dtype)
    if array.ndim == 0:
        return ops.constant(array)
    return ops.constant(
        np.ascontiguousarray(array), shared_memory=True
    )  # a copy doubles the memory of weights


def integers(*values: int) -> Node:
    """A list of integers, such as axes."""
    return constant(np.array(values, dtype=np.int64))


def weight(weights: Weights, name: str) -> Floats:
    """One of the weights."""
    try:
        return weights[name]
    except KeyError:
        raise ModelError(f"the model has no weight {name}: copy its files again") from None


class LinearWeights(Mapping[str, Floats]):
    """Weights that come with a way to build linear layers of their own."""

    @abstractmethod
    def linear(self, x: Node, name: str) -> Node:
        """``x W^T + b``"""


def linear(x: Node, weights: Weights, name: str) -> Node:
    """``x W^T + b``"""
    if isinstance(weights, LinearWeights):
        return weights.linear(x, name)
    return plain_linear(x, weights, name)


def plain_linear(x: Node, weights: Weights, name: str) -> Node:
    """``x W^T + b`` in the precision of the graph; models without biases have none."""
    product = ops.matmul(x, constant(weight(weights, f"{name}.weight")), False, True)
    bias = weights.get(f"{name}.bias")
    return product if bias is None else ops.add(product, constant(bias.reshape(1, 1, -1)))


def layer_norm(x: Node, weights: Weights, name: str, *, epsilon: float) -> Node:
    """Layer normalization over the last axis."""
    normal = ops.mvn(x, integers(-1), True, float(epsilon), "inside_sqrt")
    scaled = ops.multiply(normal, constant(weight(weights, f"{name}.weight").reshape(1, 1, -1)))
    bias = weights.get(f"{name}.bias")
    return scaled if bias is None else ops.add(scaled, constant(bias.reshape(1, 1, -1)))


def activation(x: Node, name: str) -> Node:
    """The activation function that transformers calls ``name``."""
    if name not in ACTIVATIONS:
        raise UnsupportedModelError(
            f"the OpenVINO runtime has the activations {', '.join(ACTIVATIONS)}, and this model needs "
            f'{name!r}: use runtime="torch"'
        )
    return ACTIVATIONS[name](x)


def lookup(table: Floats, ids: Node) -> Node:
    """The rows of a table."""
    return ops.gather(constant(table), ids, integers(0))


def split_heads(x: Node, heads: int, width: int) -> Node:
    """``[B, heads, T, width]``"""
    return ops.transpose(ops.reshape(x, integers(0, 0, heads, width), True), integers(0, 2, 1, 3))


def join_heads(x: Node, width: int) -> Node:
    """``[B, T, width]`` from ``[B, heads, T, ...]``"""
    return ops.reshape(ops.transpose(x, integers(0, 2, 1, 3)), integers(0, 0, width), True)


def attention(parts: Sequence[Node], bias: Node) -> Node:
    """Scaled dot-product attention.

    Args:
        parts: queries, keys and values, ``[B, heads, T, width]`` each.
        bias: is added to the logits.
    """
    return ops.scaled_dot_product_attention(*parts, bias)


def positions(count: Node) -> Node:
    """``[1, count]``: 0, 1, 2, ..."""
    counted = ops.range(constant(0, np.int32), count, constant(1, np.int32), "i32")
    return ops.unsqueeze(counted, integers(0))


def as_float(x: Node) -> Node:
    """The node in float32."""
    return ops.convert(x, "f32")


def where(condition: Node, yes: float, no: float) -> Node:
    """``yes`` or ``no`` in float32."""
    return ops.select(condition, constant(yes, np.float32), constant(no, np.float32))
