"""Numbers that exceed float32 become NaN, so that checks of the results find them.

Otherwise a norm of infinity turns a vector into zeros, and a sigmoid turns an infinite output into 1: numbers
that look valid. Everything stays on the device, because asking a GPU for a result would wait for it.
"""

import torch
from torch import Tensor
from torch.linalg import vector_norm

EPSILON = 1e-12
"""Shorter vectors are divided by this instead of their norm, so zeros stay zeros."""


def nan_if_infinite(values: Tensor) -> Tensor:
    """The values, with NaN instead of infinity."""
    return values.masked_fill(values.isinf(), torch.nan)


def norms(vectors: Tensor) -> Tensor:
    """``[...]``: the norms of ``[..., D]``, at least ``EPSILON``; NaN if one exceeds the largest number."""
    return nan_if_infinite(vector_norm(vectors, dim=-1).clamp(min=EPSILON))


def normalize(vectors: Tensor) -> Tensor:
    """``[..., D]``: the vectors divided by their norms; zeros stay zeros."""
    return vectors / norms(vectors).unsqueeze(-1)
