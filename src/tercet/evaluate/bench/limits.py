"""The least time that work takes on a machine, from its measured bandwidth and matrix rate."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch
from torch import nn

COPIED = {"cpu": 2**28, "cuda": 2**32}
"""Bytes that are copied to measure the bandwidth: much more than a cache."""
MATRIX = {"cpu": 2048, "cuda": 8192}
"""Rows and columns of the matrices whose product is timed."""
ROUNDS = 5


class Limits(NamedTuple):
    """Bytes that are read or written, and operations of matrix products, each per second."""

    bandwidth: float
    matrix_rate: float

    def seconds(self, *, read: float, operations: float) -> float:
        """The longer of two times: reading the bytes, or computing."""
        return max(read / self.bandwidth, operations / self.matrix_rate)


def measure_limits(device: torch.device, dtype: torch.dtype = torch.float32) -> Limits:
    """The limits of a device, as torch reaches them.

    Args:
        dtype: of the matrices.
    """
    kind = "cuda" if device.type == "cuda" else "cpu"
    source = torch.ones(COPIED[kind] // 4, device=device)
    target = torch.empty_like(source)
    copying = seconds_of(lambda: target.copy_(source), device)
    size = MATRIX[kind]
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    multiplying = seconds_of(lambda: left @ right, device)
    return Limits(2 * source.nbytes / copying, 2 * size**3 / multiplying)


def seconds_of(action: Callable[[], object], device: torch.device, *, rounds: int = ROUNDS) -> float:
    """The median time of an action, after one that does not count; a GPU is waited for."""
    taken = []
    for _ in range(rounds + 1):
        start = perf_counter()
        action()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(perf_counter() - start)
    return median(taken[1:])


def match_seconds(
    limits: Limits, *, contexts: int, codes: int, candidates: int, width: int, candidate_bytes: int = 4
) -> float:
    """The least time of ``match``: each candidate is read once, each product computed once.

    Args:
        candidate_bytes: bytes of one number.
    """
    return limits.seconds(
        read=candidates * width * candidate_bytes, operations=2 * contexts * codes * candidates * width
    )


def forward_seconds(limits: Limits, transformer: nn.Module, lengths: Sequence[int], *, width: int) -> float:
    """The least time of a transformer for texts of these lengths: its linear layers, and attention."""
    linear = [part.weight.numel() for part in transformer.modules() if isinstance(part, nn.Linear)]
    layers = int(getattr(transformer.config, "num_hidden_layers", 1))
    attention = 4 * layers * width * sum(length**2 for length in lengths)
    return limits.seconds(read=4 * sum(linear), operations=2 * sum(linear) * sum(lengths) + attention)
