"""The one function that scores codes against candidates.

With ``d = Y c``, the dot products of a context's codes and a candidate, the poly-encoder of Humeau et al.
(2020) attends over the codes and multiplies their weighted sum with the candidate:

    score(c) = (Σ_i w_i Y_i) · c = Σ_i w_i d_i,    w = softmax(a d)

so the weighted sums, ``[B, C, D]`` numbers, are never computed. With one code, a bi-encoder, the weight is 1.
The gradient has a closed form, ``∂score/∂d_i = w_i (1 + a (d_i − score))``, so training does not store the
``[B, C, M]`` products either: it computes them again, one block at a time.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.linalg import vecdot

from tercet.errors import InputError
from tercet.inputs import check_scale
from tercet.scorers.gpu.arithmetic import FLOATS
from tercet.scorers.gpu.choice import match_kind
from tercet.scorers.gpu.formula import compiled_scores


class BlockSize(NamedTuple):
    """How many products are computed at once, and the limits of contexts and candidates within that."""

    products: int
    contexts: int
    fewest_candidates: int
    most_candidates: int


CPU_BLOCK = BlockSize(products=2**18, contexts=4, fewest_candidates=1024, most_candidates=4096)
"""A megabyte, which stays in the cache. Fewer candidates would make the matrix product slow."""

GPU_BLOCK = BlockSize(products=2**24, contexts=1024, fewest_candidates=1024, most_candidates=2**16)
"""64 megabytes. Smaller blocks leave a GPU idle between launches."""

MASKED = -1e30
"""Added to the products of missing codes: their weight is exactly 0, and 0 times this is 0."""


class Attended(NamedTuple):
    """The attention of candidates over codes: ``logits`` (``a d``) and ``weights``, their softmax, ``[B, C,
    M]``."""

    logits: Tensor
    weights: Tensor


def match(
    codes: Tensor, candidates: Tensor, *, mask: Tensor | None = None, scale: float | Tensor = 1.0
) -> Tensor:
    """``[B, C]``: the score of each candidate, in float32 or better.

    Args:
        codes: ``[B, M, D]``
        candidates: ``[C, D]``, the same for all contexts, or ``[B, C, D]``.
        mask: ``[B, M]``, false (or 0) for missing codes; every context has at least one.
        scale: ``a`` > 0, multiplies the logits of the attention, not the score.

    Second derivatives are not supported.
    """
    mask = None if mask is None else mask.bool()
    _check_shapes(codes, candidates, mask)
    if not torch.is_tensor(scale):
        check_scale("scale", scale)
    with torch.autocast(codes.device.type, enabled=False):
        if codes.is_cuda:
            scores = _fast_scores(codes, candidates, mask, scale)
            if scores is not None:
                return scores
        codes = codes.to(torch.promote_types(codes.dtype, torch.float32))
        if codes.shape[1] == 1 and candidates.dtype == codes.dtype:
            return _dot_products(codes[:, 0], candidates)
        # created on the device: copying a number to a GPU would block
        factor = scale.to(codes) if torch.is_tensor(scale) else codes.new_full((), scale)
        return _match(codes, candidates, mask, factor)


def _fast_scores(
    codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor
) -> Tensor | None:
    """``[B, C]``, by the fastest implementation that the GPU has; None if none is better than plain torch."""
    if not {codes.dtype, candidates.dtype} <= set(FLOATS) or not codes.shape[-1]:
        return None
    if codes.shape[1] == 1 and codes.dtype == candidates.dtype == torch.float32:
        return None  # a matrix product
    kind = match_kind(codes.device)
    if kind == "triton":
        return _kernel_scores(codes, candidates, mask, scale)
    if kind == "compiled" and not torch.is_grad_enabled():
        return compiled_scores(codes.float(), candidates, mask, scale)
    return None


def _kernel_scores(
    codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor
) -> Tensor | None:
    """The scores of the Triton kernel; None if the GPU has too little shared memory for its programs."""
    from triton.runtime.errors import OutOfResources

    from tercet.scorers.gpu.match import kernel_match

    try:
        return kernel_match(codes, candidates, mask, scale)
    except OutOfResources:
        return None


def attend(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Attended:
    """The attention of candidates over codes, for one block."""
    candidates = candidates.to(codes.dtype)
    scaled = scale * codes  # cheaper than scaling the products
    offset = None if mask is None else torch.zeros_like(mask, dtype=codes.dtype).masked_fill_(~mask, MASKED)
    if candidates.dim() == 2:  # one product for all contexts, without copies of the candidates
        columns = scaled.flatten(0, 1).T  # [D, B * M]
        products = (
            candidates @ columns if offset is None else torch.addmm(offset.flatten(), candidates, columns)
        )
        logits = products.unflatten(1, codes.shape[:2]).transpose(0, 1)  # [B, C, M]
    elif offset is None:
        logits = torch.bmm(candidates, scaled.transpose(1, 2))
    else:
        logits = torch.baddbmm(offset.unsqueeze(1), candidates, scaled.transpose(1, 2))
    return Attended(logits, logits.softmax(dim=-1))


class _Match(torch.autograd.Function):
    """``match`` in blocks, forward and backward."""

    @staticmethod
    def forward(ctx: Any, codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: Tensor) -> Tensor:
        """``[B, C]``; stores only its arguments."""
        ctx.save_for_backward(codes, candidates, mask, scale)
        scores = codes.new_empty(len(codes), candidates.shape[-2])
        for rows, columns in _blocks(codes, candidates):
            logits, weights = attend(codes[rows], _part(candidates, rows, columns), _rows(mask, rows), scale)
            scores[rows, columns] = vecdot(weights, logits) / scale
        if mask is not None and mask.device.type != "cpu":
            scores.masked_fill_(~mask.any(dim=1, keepdim=True), torch.nan)  # see _check_shapes
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None, Tensor]:
        """The gradients of codes, candidates and scale from that of the scores, ``[B, C]``."""
        codes, candidates, mask, scale = ctx.saved_tensors
        of_codes, of_scale = torch.zeros_like(codes), torch.zeros_like(scale)
        # cached candidates are many and need no gradient
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
    """``[B, C]``: with one code there is no attention."""
    if candidates.dim() == 2:
        return vectors @ candidates.T
    return torch.bmm(candidates, vectors.unsqueeze(-1)).squeeze(-1)


def _blocks(codes: Tensor, candidates: Tensor) -> Iterator[tuple[slice, slice]]:
    """Slices of contexts and candidates that are scored together."""
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
            f"candidates must be [C, D] or [B, C, D] with the width of the codes ({codes.shape[-1]}), "
            f"got {list(candidates.shape)}"
        )
    if candidates.dim() == 3 and len(candidates) != len(codes):
        raise InputError(
            f"candidates [B, C, D] need as many rows as there are contexts ({len(codes)}), got "
            f"{len(candidates)}"
        )
    if mask is not None and mask.shape != codes.shape[:2]:
        raise InputError(
            f"mask must have the shape of the codes, {list(codes.shape[:2])}, got {list(mask.shape)}"
        )
    devices = {str(each.device) for each in (codes, candidates, mask) if each is not None}
    if len(devices) > 1:
        raise InputError(
            f"codes, candidates and mask must be on one device, got {', '.join(sorted(devices))}"
        )
    if mask is not None and mask.device.type == "cpu" and not bool(mask.any(dim=1).all()):
        # a GPU would have to be waited for; there, such scores are NaN, which public calls refuse
        raise InputError("every context needs at least one code that is not masked")
