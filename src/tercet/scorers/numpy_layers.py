"""What follows the transformer, in numpy: norms, layers, activations and the match of codes and vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from math import erf
from typing import TypeAlias

import numpy as np

from tercet.records import Codes, Floats
from tercet.settings.models import Activation

EPSILON = np.float32(1e-12)
"""Shorter vectors are divided by this instead of their norm, so zeros stay zeros."""

BLOCK = 4096
"""Candidates that are scored at once."""

MASKED = np.float32(-1e30)

_erf = np.vectorize(erf, otypes=[np.float32])


def norms(vectors: Floats) -> Floats:
    """``[...]``: the norms of ``[..., D]``, at least ``EPSILON``; NaN if one exceeds the largest number."""
    with np.errstate(over="ignore"):
        found = np.maximum(np.sqrt(np.einsum("...d,...d->...", vectors, vectors)), EPSILON)
    return nan_if_infinite(found)


def normalize(vectors: Floats) -> Floats:
    """``[..., D]``: the vectors divided by their norms; zeros stay zeros."""
    unit: Floats = vectors / norms(vectors)[..., None]
    return unit


def nan_if_infinite(values: Floats) -> Floats:
    """The values, with NaN instead of infinity, which a sigmoid or a norm would hide."""
    return np.where(np.isinf(values), np.float32(np.nan), values)


def _sigmoid(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        shares: Floats = (1 / (1 + np.exp(-x))).astype(np.float32)
    return shares


def _softplus(x: Floats) -> Floats:
    return np.logaddexp(np.float32(0), x)


LAYER_ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "GELU": lambda x: x * (1 + _erf(x / np.sqrt(np.float32(2)))) / 2,
    "Identity": lambda x: x,
    "LeakyReLU": lambda x: np.where(x > 0, x, np.float32(0.01) * x),
    "Mish": lambda x: x * np.tanh(_softplus(x)),
    "ReLU": lambda x: np.maximum(x, 0),
    "SELU": lambda x: (
        np.float32(1.0507009873554805)
        * np.where(x > 0, x, np.float32(1.6732632423543772) * np.expm1(np.minimum(x, 0)))
    ),
    "SiLU": lambda x: x * _sigmoid(x),
    "Sigmoid": _sigmoid,
    "Softplus": _softplus,
    "Tanh": np.tanh,
}
"""Activations of layers by their names in torch."""

ACTIVATIONS: dict[Activation, Callable[[Floats], Floats]] = {
    "identity": lambda x: x,
    "sigmoid": _sigmoid,
    "softmax": lambda x: softmax(x),
    "tanh": np.tanh,
}
"""Activations of the outputs of a cross-encoder."""


def softmax(x: Floats) -> Floats:
    """The softmax over the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A linear layer with an activation, and a residual connection if it has one."""

    weight: Floats
    bias: "Floats | None"
    activation: str
    residual: "Floats | None" = None
    """``[out, in]``, or an empty array for the identity."""

    def __call__(self, vectors: Floats) -> Floats:
        """``[B, in]`` to ``[B, out]``"""
        product = vectors @ self.weight.T
        if self.bias is not None:
            product = product + self.bias
        changed = LAYER_ACTIVATIONS[self.activation](nan_if_infinite(product))
        if self.residual is None:
            return changed
        return changed + (vectors @ self.residual.T if self.residual.size else vectors)


@dataclass(frozen=True, slots=True)
class Narrow:
    """Keeps the first ``width`` dimensions."""

    width: int

    def __call__(self, vectors: Floats) -> Floats:
        """``[B, D]`` to ``[B, width]``"""
        return vectors[:, : self.width]


Layer: TypeAlias = Callable[[Floats], Floats]


def poly_match(codes: Codes, vectors: Floats, *, scale: float) -> Floats:
    """``[B, C]``: Σ_i w_i d_i with w = softmax(a d), in blocks of candidates.

    Args:
        vectors: ``[C, D]``, or ``[B, C, D]``.
        scale: ``a``
    """
    count = vectors.shape[-2]
    scores = np.empty((len(codes), count), dtype=np.float32)
    offset = np.where(codes.mask, np.float32(0), MASKED)
    for row, own in enumerate(codes.vectors):
        scaled, candidates = np.float32(scale) * own, vectors if vectors.ndim == 2 else vectors[row]
        for start in range(0, count, BLOCK):
            part = slice(start, start + BLOCK)
            logits = candidates[part] @ scaled.T + offset[row]  # [C, M]
            weights = softmax(logits)
            scores[row, part] = np.einsum("cm,cm->c", weights, logits) / np.float32(scale)
    return scores


def products(codes: Codes, vectors: Floats) -> Floats:
    """``[B, C]``: the dot products of one code per context with the candidates."""
    only = codes.vectors[:, 0]
    found: Floats = only @ vectors.T if vectors.ndim == 2 else np.einsum("bd,bcd->bc", only, vectors)
    return found
