"""The exact p-value of a paired test of means: the distribution of a sum whose terms have random signs."""

from math import ceil, exp, lgamma, log

import numpy as np
from numpy.typing import NDArray

ENUMERATED = 20
"""Up to this many differences, all sums are enumerated."""
EXACT_UNITS = 1 << 21
"""If differences are multiples of a unit, and their sum is at most this many units, nothing is rounded."""
ROUNDED_UNITS = 1 << 20
"""Otherwise differences are rounded, so that their sum is about this many units."""
EQUAL = 1e-9
"""Numbers are equal if they differ by less than this share of the largest."""
DIRECT = 64
"""Shorter distributions are convolved without a Fourier transform."""


def sign_flip_p(gaps: NDArray[np.float64]) -> float:
    """The share of all 2ᴺ signs of the gaps ``[N]`` whose sum is as far from 0 as the sum of the gaps.

    It is exact if there are at most ``ENUMERATED`` gaps, if all have the same size (then it is the sign test,
    McNemar's exact test), or if they are multiples of a unit. Otherwise it is off by less than 10⁻⁴, and the
    same in every run.
    """
    sizes = np.abs(gaps)
    used = sizes > EQUAL * sizes.max(initial=0.0)
    gaps, sizes = gaps[used], sizes[used]
    observed = abs(float(gaps.sum()))
    if observed <= EQUAL * float(sizes.sum()):
        return 1.0
    if np.ptp(sizes) <= EQUAL * sizes.max():
        return _same_size_p(len(sizes), round(observed / float(sizes.mean())))
    if len(sizes) <= ENUMERATED:
        return _enumerated_p(sizes, observed)
    return _counted_p(sizes, observed)


def _same_size_p(count: int, lead: int) -> float:
    """P(|heads − tails| ≥ lead) of ``count`` fair coins, with ``lead`` > 0."""
    heads = (count + lead) // 2
    terms = np.arange(heads, count)
    first = lgamma(count + 1) - lgamma(heads + 1) - lgamma(count - heads + 1) - count * log(2)
    ratios = np.cumprod((count - terms) / (terms + 1.0))  # of neighbouring binomial coefficients
    return min(1.0, 2 * exp(first) * (1 + float(ratios.sum())))


def _enumerated_p(sizes: NDArray[np.float64], observed: float) -> float:
    """All sums, half of them: the others are their negatives."""
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.mean(np.abs(sums) >= observed - EQUAL * float(sizes.sum())))


def _counted_p(sizes: NDArray[np.float64], observed: float) -> float:
    """From the distribution of the sum, in whole units.

    Rounding moves a sum at random, not towards larger or smaller ones, and the observed sum is not rounded.
    So the error of p is of second order: near p = .05 about (√N · unit / deviation of the sum)² / 200.
    """
    unit = _common_unit(sizes)
    if float(sizes.sum()) > EXACT_UNITS * unit:
        unit = float(sizes.sum()) / ROUNDED_UNITS
    counts = np.rint(sizes / unit).astype(np.int64)
    positive = ceil((float(counts.sum()) + observed / unit) / 2 - 1e-3)  # the sum of terms with a plus
    p = 2 * float(_subset_sums(counts)[positive:].sum())
    return float(np.clip(p, 2.0 ** (1 - len(counts)), 1.0))


def _common_unit(sizes: NDArray[np.float64]) -> float:
    """The greatest common divisor, by Euclid's algorithm; tiny if there is none."""
    tolerance = EQUAL * float(sizes.max())
    unit = 0.0
    for size in np.unique(sizes).tolist():
        rest = unit
        unit = size
        while rest > tolerance:
            unit, rest = rest, abs(unit - round(unit / rest) * rest)
    return unit


def _subset_sums(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The probability of each sum of a random subset of whole numbers, from 0 on."""
    parts: list[NDArray[np.float64]] = []
    for count in np.sort(counts).tolist():
        part = np.zeros(count + 1)
        part[0] += 0.5
        part[-1] += 0.5
        parts.append(part)
    while len(parts) > 1:
        paired = [_convolved(*parts[first : first + 2]) for first in range(0, len(parts) - 1, 2)]
        parts = paired + parts[2 * len(paired) :]
    return parts[0]


def _convolved(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    if min(len(left), len(right)) <= DIRECT:
        return np.convolve(left, right)
    length = len(left) + len(right) - 1
    size = 1 << (length - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(left, size) * np.fft.rfft(right, size), size)[:length]
    return np.maximum(product, 0.0)
