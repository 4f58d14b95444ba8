"""How an index stores vectors: in float32, bfloat16 or int8. A new kind is one entry of ``STORAGES``."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tercet.index.quantized import QuantizedVectors, dequantize, quantize
from tercet.records import Floats
from tercet.settings.index import Storage

SIXTEEN = np.uint32(16)


class Encoded(NamedTuple):
    """Vectors as they are stored, ``[N, D]``, and their quantized form, which searches scan first."""

    values: NDArray[Any]
    quantized: QuantizedVectors


class StorageSpec(NamedTuple):
    """The two directions of a kind of storage."""

    encode: Callable[[Floats], Encoded]
    """Vectors ``[N, D]`` to their stored form."""
    decode: Callable[[NDArray[Any], Floats], Floats]
    """Stored values ``[n, D]``, and the scales ``[n]`` of their quantized form, to float32 vectors."""


def encode_float32(vectors: Floats) -> Encoded:
    """The vectors themselves."""
    return Encoded(vectors, quantize(vectors))


def encode_bfloat16(vectors: Floats) -> Encoded:
    """The vectors in half the memory."""
    bits = to_bfloat16(vectors)
    return Encoded(bits, quantize(from_bfloat16(bits)))


def encode_int8(vectors: Floats) -> Encoded:
    """The quantized vectors alone. They are what is searched, so their error is zero."""
    quantized = quantize(vectors)._replace(errors=np.zeros(len(vectors), dtype=np.float32))
    return Encoded(quantized.values, quantized)


STORAGES: dict[Storage, StorageSpec] = {
    "float32": StorageSpec(encode_float32, lambda values, scales: values),
    "bfloat16": StorageSpec(encode_bfloat16, lambda values, scales: from_bfloat16(values)),
    "int8": StorageSpec(encode_int8, dequantize),
}


def to_bfloat16(vectors: Floats) -> NDArray[np.uint16]:
    """The bits of the nearest bfloat16 of each number."""
    bits = vectors.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + ((bits >> SIXTEEN) & np.uint32(1))  # ties round to even
    return (nearest >> SIXTEEN).astype(np.uint16)


def from_bfloat16(bits: NDArray[np.uint16]) -> Floats:
    """The float32 numbers that bfloat16 bits stand for."""
    return (bits.astype(np.uint32) << SIXTEEN).view(np.float32)
