"""Matrices in two or four bits per weight, for deltas between models.

The numbers of a row form groups of 64. A group has a scale s, and each of its numbers is one of the 2^b
levels (q + ½ - 2^(b-1)) · s, which are symmetric around zero; none is zero unless the whole group is.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tercet.formats.unpacking import BITS, GROUP, Bits, unpacked

__all__ = ["BITS", "Bits", "Quantized", "can_quantize", "dequantize", "quantize"]

SHARES = (0.0, *torch.linspace(0.3, 1.0, 29).tolist())
"""Scales that are tried, as shares of the one that reaches the largest number of a group. A smaller scale
clips that number and represents the others better."""


class Quantized(NamedTuple):
    """A quantized matrix ``[R, C]``."""

    levels: Tensor
    """``[R, C · bits / 8]`` bytes; each packs several levels, the first in the lowest bits."""
    scales: Tensor
    """``[R, C / 64]`` in float16, relative to the largest scale."""
    largest: Tensor
    """``[1]`` in float32: the largest scale, which keeps the others in range."""


def can_quantize(matrix: Tensor) -> bool:
    """Whether the rows of a matrix are whole groups."""
    return matrix.ndim == 2 and matrix.numel() > 0 and matrix.shape[1] % GROUP == 0


def quantize(matrix: Tensor, bits: Bits) -> Quantized:
    """The levels and scales with the least squared error, among the scales that are tried."""
    groups = matrix.to(torch.float32).reshape(len(matrix), -1, GROUP)
    highest = groups.abs().amax(dim=-1, keepdim=True) / (2 ** (bits - 1) - 0.5)
    largest = highest.max().reshape(1)
    unit = torch.where(largest == 0, 1.0, largest)
    groups, highest = groups / unit, highest / unit
    best = torch.full_like(highest, torch.inf)
    scales = torch.zeros_like(highest)
    for share in SHARES:
        tried = (share * highest).to(torch.float16).to(torch.float32)
        error = (_values(_nearest(groups, tried, bits), tried, bits) - groups).square().sum(-1, keepdim=True)
        scales = torch.where(error < best, tried, scales)
        best = torch.minimum(error, best)
    levels = _nearest(groups, scales, bits).reshape(matrix.shape)
    return Quantized(_packed(levels, bits), scales.squeeze(dim=-1).to(torch.float16), largest)


def dequantize(packed: Quantized, bits: Bits) -> Tensor:
    """``[R, C]`` in float32, identical on every machine."""
    parts = (part.numpy() for part in packed)
    return torch.from_numpy(unpacked(*parts, bits=bits))


def _nearest(groups: Tensor, scales: Tensor, bits: Bits) -> Tensor:
    steps = groups / torch.where(scales == 0, 1.0, scales)
    half = float(1 << (bits - 1))
    return (steps + (half - 0.5)).round().clamp(0, 2 * half - 1).to(torch.uint8)


def _values(levels: Tensor, scales: Tensor, bits: Bits) -> Tensor:
    return (levels.to(torch.float32) + (0.5 - float(1 << (bits - 1)))) * scales


def _packed(levels: Tensor, bits: Bits) -> Tensor:
    parts = levels.reshape(len(levels), -1, 8 // bits)
    packed = torch.zeros(parts.shape[:-1], dtype=torch.uint8, device=levels.device)
    for position in range(8 // bits):
        packed |= parts[..., position] << (bits * position)
    return packed
