"""``match`` in a few lines of torch: for ``torch.compile``, and to check other implementations."""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vecdot

CANDIDATES_AT_ONCE = 2**18
"""Candidates of one context in a compiled call, so that its products need little memory."""


def plain_scores(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
    """``[B, C]``: the scores of codes ``[B, M, D]`` against candidates ``[C, D]`` or ``[B, C, D]``.

    They have the type of the codes. The scores of a context whose codes are all masked are NaN.
    """
    products = candidates.to(codes.dtype) @ codes.transpose(1, 2)  # [B, C, M]
    logits = scale * products
    if mask is not None:
        missing = ~mask.unsqueeze(1)
        products, logits = products.masked_fill(missing, 0.0), logits.masked_fill(missing, -torch.inf)
    scores: Tensor = vecdot(logits.softmax(dim=-1), products)
    return scores


def compiled_scores(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
    """As ``plain_scores``, compiled once for all sizes; without gradients."""
    factor = scale if torch.is_tensor(scale) else codes.new_full((), scale)
    scores = codes.new_empty(len(codes), candidates.shape[-2])
    for row in range(len(codes)):
        part = candidates if candidates.dim() == 2 else candidates[row]
        kept = None if mask is None else mask[row : row + 1]
        for start in range(0, part.shape[0], CANDIDATES_AT_ONCE):
            some = slice(start, start + CANDIDATES_AT_ONCE)
            scores[row, some] = _compiled()(codes[row : row + 1], part[some], kept, factor)[0]
    return scores


@cache
def _compiled() -> Any:
    return torch.compile(plain_scores, dynamic=True)
