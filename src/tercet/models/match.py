"""The one function that scores codes against candidates; everything that scores calls it.

With ``d = Y c``, the products of a context's codes and a candidate, the poly-encoder of Humeau et al. (2020)
attends over the codes and multiplies the average by the candidate:

    score(c) = (Σ_i w_i Y_i) · c = Σ_i w_i d_i,    w = softmax(a d)

so the average, ``[B, C, D]`` numbers, is never built. One code is a bi-encoder: its weight is 1. The gradient
is short enough to be written down, ``∂score/∂d_i = w_i (1 + a (d_i − score))``, so training keeps nothing of
the ``[B, C, M]`` products either: they are made again, a block at a time.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.linalg import vecdot

from tercet.errors import InputError
from tercet.inputs import check_scale


class BlockSize(NamedTuple):
    """How many products are made at once, and within that, how many contexts and candidates at the most."""

    products: int
    contexts: int
    fewest_candidates: int
    most_candidates: int


CPU_BLOCK = BlockSize(products=2**18, contexts=4, fewest_candidates=1024, most_candidates=4096)
"""A megabyte, which stays in the cache; fewer candidates make the matrix product slow."""

GPU_BLOCK = BlockSize(products=2**24, contexts=1024, fewest_candidates=1024, most_candidates=2**16)
"""64 megabytes: smaller ones leave a GPU waiting for the next."""

BARRED = -1e30
"""Added to the products of codes that are not there: their weight is exactly 0, and 0 times this is 0."""


class Attended(NamedTuple):
    """How candidates attend to codes: ``logits`` (``a d``) and ``weights``, their softmax, ``[B, C, M]``."""

    logits: Tensor
    weights: Tensor


def match(
    codes: Tensor, candidates: Tensor, *, mask: Tensor | None = None, scale: float | Tensor = 1.0
) -> Tensor:
    """``[B, C]``: the score of each candidate, in float32 or better.

    Args:
        codes: ``[B, M, D]``
        candidates: ``[C, D]``, the same for all contexts, or ``[B, C, D]``.
        mask: ``[B, M]``, false (or 0) where a short context has no code; every context has at least one.
        scale: ``a`` > 0, how sharply the candidates attend to the codes; it does not touch the products.

    It can be differentiated once, not twice.
    """
    mask = None if mask is None else mask.bool()
    _check_shapes(codes, candidates, mask)
    if not torch.is_tensor(scale):
        check_scale("scale", scale)
    codes = codes.to(torch.promote_types(codes.dtype, torch.float32))
    with torch.autocast(codes.device.type, enabled=False):
        if codes.shape[1] == 1 and candidates.dtype == codes.dtype:
            return _dot_products(codes[:, 0], candidates)
        # a number is filled in where it is needed: to copy it to a GPU is to wait for it
        sharpness = scale.to(codes) if torch.is_tensor(scale) else codes.new_full((), scale)
        return _match(codes, candidates, mask, sharpness)


def attend(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Attended:
    """The attention of a block's candidates over its codes."""
    candidates = candidates.to(codes.dtype)
    sharpened = scale * codes  # cheaper than to multiply the products
    barred = None if mask is None else torch.zeros_like(mask, dtype=codes.dtype).masked_fill_(~mask, BARRED)
    if candidates.dim() == 2:  # one product for all contexts, and no copy of the candidates for each
        columns = sharpened.flatten(0, 1).T  # [D, B * M]
        products = (
            candidates @ columns if barred is None else torch.addmm(barred.flatten(), candidates, columns)
        )
        logits = products.unflatten(1, codes.shape[:2]).transpose(0, 1)  # [B, C, M]
    elif barred is None:
        logits = torch.bmm(candidates, sharpened.transpose(1, 2))
    else:
        logits = torch.baddbmm(barred.unsqueeze(1), candidates, sharpened.transpose(1, 2))
    return Attended(logits, logits.softmax(dim=-1))


class _Match(torch.autograd.Function):
    """``match`` in blocks, forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: Tensor) -> Tensor:
        """``[B, C]``; keeps its arguments and nothing else."""
        ctx.save_for_backward(codes, candidates, mask, scale)
        scores = codes.new_empty(len(codes), candidates.shape[-2])
        for rows, columns in _blocks(codes, candidates):
            logits, weights = attend(codes[rows], _part(candidates, rows, columns), _rows(mask, rows), scale)
            scores[rows, columns] = vecdot(weights, logits) / scale
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None, Tensor]:
        """The gradients of codes, candidates and scale from that of the scores, ``[B, C]``."""
        codes, candidates, mask, scale = ctx.saved_tensors
        of_codes, of_scale = torch.zeros_like(codes), torch.zeros_like(scale)
        # cached candidates are many and want none
        of_candidates = torch.zeros_like(candidates) if ctx.needs_input_grad[1] else None
        for rows, columns in _blocks(codes, candidates):
            part = _part(candidates, rows, columns)
            logits, weights = attend(codes[rows], part, _rows(mask, rows), scale)
            excess = logits - vecdot(weights, logits).unsqueeze(-1)  # [B, C, M]: a (d - score)
            weights *= gradient[rows, columns].unsqueeze(-1)
            of_scale += (weights * logits * excess).sum() / scale**2
            of_products = weights * (1 + excess)
            per = "c" if candidates.dim() == 2 else "bc"  # the letters of a candidate
            of_codes[rows] += torch.einsum(f"bcm,{per}d->bmd", of_products, part.to(codes.dtype))
            if of_candidates is not None:
                of_part = torch.einsum(f"bcm,bmd->{per}d", of_products, codes[rows])
                _part(of_candidates, rows, columns).add_(of_part)
        return of_codes, of_candidates, None, of_scale


_match: Callable[[Tensor, Tensor, Tensor | None, Tensor], Tensor] = _Match.apply


def _dot_products(vectors: Tensor, candidates: Tensor) -> Tensor:
    """``[B, C]``: one code needs no attention."""
    if candidates.dim() == 2:
        return vectors @ candidates.T
    return torch.bmm(candidates, vectors.unsqueeze(-1)).squeeze(-1)


def _blocks(codes: Tensor, candidates: Tensor) -> Iterator[tuple[slice, slice]]:
    """Contexts and candidates that are scored together."""
    size = CPU_BLOCK if codes.device.type == "cpu" else GPU_BLOCK
    contexts, number, candidate_count = len(codes), codes.shape[1], candidates.shape[-2]
    each = number * max(1, min(candidate_count, size.most_candidates))  # products of one context
    together = min(max(size.products // each, 1), size.contexts)
    width = size.products // (min(together, max(contexts, 1)) * number)
    width = min(max(width, size.fewest_candidates), size.most_candidates)
    for row in range(0, contexts, together):
        for column in range(0, candidate_count, width):
            yield slice(row, row + together), slice(column, column + width)


def _part(candidates: Tensor, rows: slice, columns: slice) -> Tensor:
    return candidates[columns] if candidates.dim() == 2 else candidates[rows, columns]


def _rows(mask: Tensor | None, rows: slice) -> Tensor | None:
    return None if mask is None else mask[rows]


def _check_shapes(codes: Tensor, candidates: Tensor, mask: Tensor | None) -> None:
    if codes.dim() != 3 or codes.shape[1] == 0:
        raise InputError(f"codes must be [B, M, D] with at least one code, got {list(codes.shape)}")
    if candidates.dim() not in (2, 3) or candidates.shape[-1] != codes.shape[-1]:
        raise InputError(
            f"candidates must be [C, D] or [B, C, D] and as wide as the codes ({codes.shape[-1]}), "
            f"got {list(candidates.shape)}"
        )
    if candidates.dim() == 3 and len(candidates) != len(codes):
        raise InputError(f"{len(codes)} contexts need as many lists of candidates, got {len(candidates)}")
    if mask is not None and mask.shape != codes.shape[:2]:
        raise InputError(f"mask must be {list(codes.shape[:2])}, as the codes, got {list(mask.shape)}")
    if mask is not None and not bool(mask.any(dim=1).all()):
        raise InputError("every context needs at least one code that its mask lets through")
