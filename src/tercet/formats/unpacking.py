"""Quantized matrices back to float32, in numpy; ``quantization`` explains their form."""

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.records import Floats

Bits: TypeAlias = Literal[2, 4]
BITS: tuple[Bits, ...] = get_args(Bits)

GROUP = 64
"""Numbers of a row that share a scale."""

WHOLE: dict[Bits, type[np.generic]] = {2: np.complex128, 4: np.complex64}
"""Types as wide as the float32 numbers of a byte, which are then copied at once: four times as fast."""


def unpacked(levels: NDArray[np.uint8], scales: NDArray[Any], largest: Floats, *, bits: Bits) -> Floats:
    """``[R, C]``

    Args:
        levels: ``[R, C * bits / 8]``
        scales: ``[R, C / 64]``, relative to the largest.
        largest: ``[1]``, the largest scale.
    """
    table = np.arange(2**bits, dtype=np.float32) + np.float32(0.5 - (1 << (bits - 1)))
    each_byte = table[_levels_of_bytes(bits)].view(WHOLE[bits])  # [256, 1]
    values = each_byte.ravel().take(levels).view(np.float32).reshape(*scales.shape, GROUP)
    values *= (scales.astype(np.float32) * largest)[..., None]
    return values.reshape(len(levels), -1)


def _levels_of_bytes(bits: Bits) -> NDArray[np.intp]:
    """``[256, 8 / bits]``: the levels in each byte, the first in the lowest bits."""
    shifts = np.arange(0, 8, bits)
    return (np.arange(256)[:, None] >> shifts) & (2**bits - 1)
