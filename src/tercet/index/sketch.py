"""Vectors in a quarter of the memory, with a bound on what that costs.

A vector ``v`` is kept as whole numbers times a scale, ``v̂``. For a code ``y``, kept the same way,

    | y · v − ŷ · v̂ |  ≤  ‖y‖ ‖v − v̂‖  +  ‖y − ŷ‖ ‖v̂‖

so a scan over the small numbers says which vectors can be among the best, and only those are scored exactly.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tercet.extras import require
from tercet.index.scoring import rounding
from tercet.records import Floats

LARGEST = 127
AT_ONCE = 16_384


class Sketch(NamedTuple):
    """``values`` ``[N, D]`` in int8, and for each vector its scale, ``‖v − v̂‖`` and ``‖v̂‖``."""

    values: NDArray[np.int8]
    scales: Floats
    errors: Floats
    lengths: Floats

    def part(self, rows: slice) -> "Sketch":
        """Some of the vectors."""
        return Sketch(self.values[rows], self.scales[rows], self.errors[rows], self.lengths[rows])


def sketch(vectors: Floats) -> Sketch:
    """The sketch of vectors ``[N, D]``, made a part at a time, which keeps memory low."""
    parts = [_sketch(vectors[start : start + AT_ONCE]) for start in range(0, len(vectors), AT_ONCE)]
    return Sketch(*map(np.concatenate, zip(*parts, strict=True))) if parts else _sketch(vectors)


def _sketch(vectors: Floats) -> Sketch:
    scales = np.abs(vectors).max(axis=1, initial=0.0) / LARGEST
    scales = np.where(scales > 0, scales, 1).astype(np.float32)  # a vector of zeros
    values = np.rint(vectors / scales[:, None]).astype(np.int8)
    restored = restore(values, scales)
    errors = np.linalg.norm(vectors - restored, axis=1)
    return Sketch(values, scales, errors, np.linalg.norm(restored, axis=1))


def restore(values: NDArray[np.int8], scales: Floats) -> Floats:
    """``[N, D]``: what the small numbers stand for."""
    restored: Floats = values.astype(np.float32) * scales[:, None]
    return restored


def estimate(code: Sketch, of: Sketch) -> tuple[Floats, Floats]:
    """``[N]`` products of one code with the vectors of a sketch, and ``[N]``: how far they may be off."""
    products = whole_products(code.values[0], of.values) * (of.scales * code.scales[0])
    length = code.lengths[0] + code.errors[0]
    margins = length * of.errors + code.errors[0] * of.lengths
    return products, margins + rounding(of.values.shape[1]) * length * (of.lengths + of.errors)


def whole_products(code: NDArray[np.int8], of: NDArray[np.int8]) -> Floats:
    """``[N]``: the inner products of a vector of whole numbers ``[D]`` with others ``[N, D]``.

    simsimd's ``cdist`` does the same and leaves torch with one thread: it sets OpenMP's number for good.
    """
    simsimd: Any = require("simsimd", extra="index", purpose="searching an index")
    products: Floats = np.asarray(simsimd.dot(of, code, out_dtype="float32"))
    return products
