"""Scalar quantization to 8 bits, with a bound on its error.

A vector ``v`` is stored as int8 values times a scale, ``v̂``. For a query ``y``, quantized in the same way,

    | y · v − ŷ · v̂ |  ≤  ‖y‖ ‖v − v̂‖  +  ‖y − ŷ‖ ‖v̂‖

so a scan over the int8 values shows which vectors can be among the best, and only those are scored exactly.
"""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tercet.index.scoring import relative_rounding_error
from tercet.records import Floats

MAX_INT8 = 127
BLOCK = 16_384
"""Vectors that are quantized at once, which bounds the memory."""


class QuantizedVectors(NamedTuple):
    """``values`` ``[N, D]`` in int8, and the scale, the error ``‖v − v̂‖`` and the norm ``‖v̂‖`` of each."""

    values: NDArray[np.int8]
    scales: Floats
    errors: Floats
    norms: Floats

    def take(self, rows: slice) -> "QuantizedVectors":
        """A range of the vectors."""
        return QuantizedVectors(self.values[rows], self.scales[rows], self.errors[rows], self.norms[rows])


def quantize(vectors: Floats) -> QuantizedVectors:
    """Vectors ``[N, D]`` in 8 bits."""
    blocks = [_quantize(vectors[start : start + BLOCK]) for start in range(0, len(vectors), BLOCK)]
    return QuantizedVectors(*map(np.concatenate, zip(*blocks, strict=True))) if blocks else _quantize(vectors)


def _quantize(vectors: Floats) -> QuantizedVectors:
    scales = np.abs(vectors).max(axis=1, initial=0.0) / MAX_INT8
    scales = np.where(scales > 0, scales, 1).astype(np.float32)  # a zero vector needs some scale
    values = np.rint(vectors / scales[:, None]).astype(np.int8)
    restored = dequantize(values, scales)
    errors = np.linalg.norm(vectors - restored, axis=1)
    return QuantizedVectors(values, scales, errors, np.linalg.norm(restored, axis=1))


def dequantize(values: NDArray[np.int8], scales: Floats) -> Floats:
    """``[N, D]``: the int8 values times their scales."""
    vectors: Floats = values.astype(np.float32) * scales[:, None]
    return vectors


def estimate(query: QuantizedVectors, vectors: QuantizedVectors) -> tuple[Floats, Floats]:
    """``[N]`` estimated inner products of one query with the vectors, and ``[N]`` bounds on their errors."""
    products = int8_products(query.values[0], vectors.values) * (vectors.scales * query.scales[0])
    norm = query.norms[0] + query.errors[0]
    bounds = norm * vectors.errors + query.errors[0] * vectors.norms
    rounding = relative_rounding_error(vectors.values.shape[1]) * norm * (vectors.norms + vectors.errors)
    return products, bounds + rounding


def int8_products(query: NDArray[np.int8], vectors: NDArray[np.int8]) -> Floats:
    """``[N]``: the inner products of an int8 query ``[D]`` with int8 vectors ``[N, D]``.

    ``simsimd.cdist`` would compute the same, but it sets the OpenMP thread count for good, which leaves torch
    with one thread.
    """
    simsimd: Any = import_module("simsimd")
    products: Floats = np.asarray(simsimd.dot(vectors, query, out_dtype="float32"))
    return products
