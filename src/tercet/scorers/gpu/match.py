"""``match`` by the Triton kernels, with gradients."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tercet.scorers.gpu.arithmetic import Arithmetic, Blocks, choose_arithmetic, choose_blocks
from tercet.scorers.gpu.kernels import gradient_kernel, score_kernel

PRODUCTS_AT_ONCE = 2**26
"""Gradients of products in memory in a backward pass: 256 MB."""


class KernelOptions(NamedTuple):
    """What a caller may choose; by default what the types and sizes suggest."""

    arithmetic: Arithmetic | None = None
    blocks: Blocks | None = None


class BlockMaxima(NamedTuple):
    """``scores [B, C]``, and the best score of each block of ``size`` candidates, ``[B, blocks]``."""

    scores: Tensor
    maxima: Tensor
    size: int


class _Launch:
    """The arguments that both kernels share, for codes ``[B, M, D]`` and candidates."""

    def __init__(
        self, codes: Tensor, candidates: Tensor, mask: Tensor | None, options: KernelOptions
    ) -> None:
        self.codes = codes if codes.stride(-1) == 1 else codes.contiguous()
        self.candidates = candidates if candidates.stride(-1) == 1 else candidates.contiguous()
        self.mask = None if mask is None else mask.contiguous().view(torch.uint8)
        self.own = candidates.dim() == 3
        contexts, number, width = codes.shape
        self.count = candidates.shape[-2]
        self.blocks = options.blocks or choose_blocks(
            contexts,
            number,
            self.count,
            candidate_bytes=candidates.element_size(),
            shared_memory=_shared_memory(codes.device),
        )
        arithmetic = options.arithmetic or choose_arithmetic(
            codes.dtype, candidates.dtype, tf32=torch.get_float32_matmul_precision() != "highest"
        )
        self.sizes = contexts, self.count, number, width
        self.strides = (
            *self.codes.stride()[:2],
            self.candidates.stride(0) if self.own else 0,
            self.candidates.stride(-2),
            0 if self.mask is None else self.mask.stride(0),
        )
        self.constants: dict[str, Any] = {
            "arithmetic": arithmetic,
            "interpreted": codes.device.type == "cpu",
            "has_mask": self.mask is not None,
            "whole_width": width % self.blocks.width == 0,
            "block_candidates": self.blocks.candidates,
            "block_codes": self.blocks.codes,
            "block_width": self.blocks.width,
            "num_warps": self.blocks.warps,
            "num_stages": self.blocks.stages,
        }

    @property
    def block_count(self) -> int:
        """Blocks of candidates."""
        return -(-self.count // self.blocks.candidates)

    @property
    def grid(self) -> tuple[int]:
        """One program for each block and context."""
        return (self.block_count * len(self.codes),)


def kernel_scores(
    codes: Tensor,
    candidates: Tensor,
    *,
    mask: Tensor | None = None,
    scale: float | Tensor = 1.0,
    row_scales: Tensor | None = None,
    options: KernelOptions | None = None,
) -> Tensor:
    """``[B, C]``: the scores in float32, without gradients.

    Args:
        codes: ``[B, M, D]`` in float32, bfloat16 or float16.
        candidates: ``[C, D]`` or ``[B, C, D]``, in one of these types or int8.
        mask: ``[B, M]``, false for missing codes; the scores of a context without any are NaN.
        scale: the factor of the attention's logits.
        row_scales: ``[C]``, factors of the candidates.
    """
    launch = _Launch(codes, candidates, mask, options or KernelOptions())
    scores, _, _ = _run_scores(launch, scale, row_scales, logsums=False, maxima=False)
    return scores


def kernel_maxima(
    codes: Tensor,
    candidates: Tensor,
    *,
    mask: Tensor | None = None,
    scale: float | Tensor = 1.0,
    row_scales: Tensor | None = None,
    options: KernelOptions | None = None,
) -> BlockMaxima:
    """The scores, as ``kernel_scores``, and the best of each block: a search need not read all scores."""
    launch = _Launch(codes, candidates, mask, options or KernelOptions())
    scores, _, maxima = _run_scores(launch, scale, row_scales, logsums=False, maxima=True)
    return BlockMaxima(scores, maxima, launch.blocks.candidates)


def kernel_match(codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: float | Tensor) -> Tensor:
    """``[B, C]``: the scores, with gradients of codes, candidates and scale."""
    needs = any(torch.is_tensor(each) and each.requires_grad for each in (codes, candidates, scale))
    if not (needs and torch.is_grad_enabled()):
        return kernel_scores(codes, candidates, mask=mask, scale=scale)
    factor = scale if torch.is_tensor(scale) else codes.new_full((), scale, dtype=torch.float32)
    return _kernel_match(codes, candidates, mask, factor)


class _KernelMatch(torch.autograd.Function):
    """Both passes by kernels; the backward pass computes the products again."""

    @staticmethod
    def forward(ctx: Any, codes: Tensor, candidates: Tensor, mask: Tensor | None, scale: Tensor) -> Tensor:
        """``[B, C]``; stores its arguments and two numbers for each score."""
        launch = _Launch(codes, candidates, mask, KernelOptions())
        scores, logsums, _ = _run_scores(launch, scale, None, logsums=True, maxima=False)
        ctx.save_for_backward(codes, candidates, mask, scale, scores, logsums)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, Tensor | None]:
        """The gradients of codes, candidates and scale from that of the scores, ``[B, C]``."""
        codes, candidates, mask, scale, scores, logsums = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        of_codes = torch.zeros_like(codes, dtype=torch.float32) if wanted[0] else None
        of_candidates = torch.zeros_like(candidates, dtype=torch.float32) if wanted[1] else None
        of_scale = torch.zeros_like(scale, dtype=torch.float32) if wanted[3] else None
        own = candidates.dim() == 3
        for rows in _row_groups(codes, candidates):
            part = candidates[rows] if own else candidates
            launch = _Launch(codes[rows], part, None if mask is None else mask[rows], KernelOptions())
            given = scores[rows], logsums[rows], gradient[rows].float().contiguous()
            of_products, slopes = _run_gradient(launch, scale, given, with_scale=wanted[3])
            if of_codes is not None:
                of_codes[rows] = _of_codes(of_products, part.float())
            if of_candidates is not None:
                _add_of_candidates(of_candidates[rows] if own else of_candidates, of_products, codes[rows])
            if of_scale is not None and slopes is not None:
                of_scale += slopes.sum()
        return (
            None if of_codes is None else of_codes.to(codes.dtype),
            None if of_candidates is None else of_candidates.to(candidates.dtype),
            None,
            None if of_scale is None else of_scale.to(scale.dtype),
        )


_kernel_match: Callable[[Tensor, Tensor, Tensor | None, Tensor], Tensor] = _KernelMatch.apply


def _of_codes(of_products: Tensor, candidates: Tensor) -> Tensor:
    """``[B, M, D]``, from ``[C, B, M]`` and shared candidates or from ``[B, C, M]`` and own ones."""
    letters = "bcm,bcd->bmd" if candidates.dim() == 3 else "cbm,cd->bmd"
    return torch.einsum(letters, of_products, candidates)


def _add_of_candidates(total: Tensor, of_products: Tensor, codes: Tensor) -> None:
    """Add ``[C, D]`` or ``[B, C, D]`` to the gradient of candidates."""
    if total.dim() == 3:
        total += torch.bmm(of_products, codes.float())
    else:
        total.addmm_(of_products.flatten(1), codes.float().flatten(0, 1))


def _row_groups(codes: Tensor, candidates: Tensor) -> list[slice]:
    """Contexts whose products fit into memory together."""
    contexts, number, _ = codes.shape
    size = max(1, PRODUCTS_AT_ONCE // max(1, number * candidates.shape[-2]))
    return [slice(start, start + size) for start in range(0, contexts, size)]


def _run_scores(
    launch: _Launch, scale: float | Tensor, row_scales: Tensor | None, *, logsums: bool, maxima: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, sums and maxima; the latter two are empty unless wanted."""
    codes = launch.codes
    scores = codes.new_empty(len(codes), launch.count, dtype=torch.float32)
    sums = torch.empty_like(scores) if logsums else scores[:0]
    best = codes.new_empty(len(codes), launch.block_count if maxima else 0, dtype=torch.float32)
    if scores.numel():
        with _on(codes.device):
            score_kernel[launch.grid](
                codes,
                launch.candidates,
                codes if launch.mask is None else launch.mask,
                codes if row_scales is None else row_scales,
                scale,
                scores,
                sums,
                best,
                *launch.sizes,
                *launch.strides,
                scale_in_memory=torch.is_tensor(scale),
                has_row_scales=row_scales is not None,
                has_logsums=logsums,
                has_maxima=maxima,
                **launch.constants,
            )
    return scores, sums, best


def _run_gradient(
    launch: _Launch, scale: Tensor, given: tuple[Tensor, Tensor, Tensor], *, with_scale: bool
) -> tuple[Tensor, Tensor | None]:
    """The gradients of the products, ``[C, B, M]`` or ``[B, C, M]``, and those of the scale, ``[B, C]``."""
    codes, (scores, logsums, gradient) = launch.codes, given
    contexts, count, number, _ = launch.sizes
    shape = (contexts, count) if launch.own else (count, contexts)
    of_products = codes.new_empty(*shape, number, dtype=torch.float32)
    of_scale = codes.new_empty(contexts, count, dtype=torch.float32) if with_scale else None
    if of_products.numel():
        with _on(codes.device):
            gradient_kernel[launch.grid](
                codes,
                launch.candidates,
                codes if launch.mask is None else launch.mask,
                scale,
                scores,
                logsums,
                gradient,
                of_products,
                gradient if of_scale is None else of_scale,
                *launch.sizes,
                *launch.strides,
                scores.stride(0),
                gradient.stride(0),
                own=launch.own,
                has_scale=with_scale,
                **launch.constants,
            )
    return of_products, of_scale


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Triton launches on the current device, which may be another GPU; on a CPU, it interprets."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _shared_memory(device: torch.device) -> int:
    if device.type != "cuda":
        return 2**18
    return int(torch.cuda.get_device_properties(device).shared_memory_per_multiprocessor)
