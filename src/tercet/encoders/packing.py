"""Attention over packed texts: all tokens of a batch in one sequence, without padding.

Linear layers, where a transformer spends most of its time, do not depend on where a text ends. So the tokens
of a whole batch pass through them as one sequence ``[1, N, D]``, and only attention works text by text: texts
of equal length that are adjacent are processed in one call. Transformers looks up a model's attention
function in a registry. Ours is registered once under ``IMPLEMENTATION`` and receives the lengths with each
forward pass, so several threads can share a model. On a GPU one kernel handles texts of all lengths at once,
in half precision.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, chain, groupby, islice
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

IMPLEMENTATION = "tercet"

PLAIN_UP_TO = 96
"""On a CPU, plain matrix products beat torch's fused kernel up to about this many tokens (3x at 16)."""


AMPERE = (8, 0)
"""The first compute capability with variable-length attention."""


class Run(NamedTuple):
    """Adjacent texts of equal length: ``texts`` of them, ``tokens`` each, from row ``start``."""

    start: int
    texts: int
    tokens: int
    bias: Tensor | None = None
    """``[texts, 1, tokens, tokens]``, added to the attention logits."""


class Bounds(NamedTuple):
    """Adjacent texts of any lengths on a GPU: text i occupies the rows ``rows[i]`` to ``rows[i + 1]``."""

    rows: Tensor
    longest: int


class Padding(NamedTuple):
    """Texts in rows of equal length: ``mask [B, T]`` is false behind the end of each."""

    mask: Tensor


Packing: TypeAlias = Sequence[Run] | Bounds | Padding


class SeparateTexts(NamedTuple):
    """Pairs whose texts are encoded separately, with reduced attention to the other text.

    ``starts`` are the positions where the second texts begin. ``weight`` multiplies the attention to the
    other text before normalization; 0 disables it.
    """

    starts: Sequence[int]
    weight: float


def equal_length_runs(lengths: Sequence[int]) -> list[Run]:
    """The runs of equal lengths, in order."""
    runs: list[Run] = []
    start = 0
    for tokens, equal in groupby(lengths):
        texts = sum(1 for _ in equal)
        runs.append(Run(start, texts, tokens))
        start += texts * tokens
    return runs


def text_bounds(lengths: Sequence[int], device: torch.device) -> Bounds:
    """The bounds of texts of these lengths."""
    rows = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
    return Bounds(to_device(rows, device), max(lengths))


def make_packing(
    lengths: Sequence[int], device: torch.device, separate: SeparateTexts | None = None
) -> Packing:
    """How texts of these lengths are packed, in the form that attention needs on this device."""
    runs = equal_length_runs(lengths)
    if separate is None:
        return runs if device.type == "cpu" else text_bounds(lengths, device)
    starts = iter(separate.starts)
    pairs = [SeparateTexts(list(islice(starts, run.texts)), separate.weight) for run in runs]
    return [
        run._replace(bias=attention_bias(each, run.tokens)) for run, each in zip(runs, pairs, strict=True)
    ]


def attention_bias(separate: SeparateTexts, tokens: int, device: torch.device | None = None) -> Tensor:
    """``[B, 1, T, T]``, added to the attention logits.

    Args:
        tokens: T, the length of a pair.
    """
    positions, starts = torch.arange(tokens), torch.tensor(separate.starts).unsqueeze(1)
    is_second = (positions >= starts).to(device)  # [B, T]
    differ = is_second.unsqueeze(2) != is_second.unsqueeze(1)
    added = math.log(separate.weight) if separate.weight else -math.inf
    return torch.zeros(differ.shape, device=device).masked_fill(differ, added).unsqueeze(1)


def text_lengths(lengths: Sequence[int], separate: SeparateTexts) -> list[int]:
    """The lengths of the single texts of pairs of these lengths."""
    both = ((start, whole - start) for start, whole in zip(separate.starts, lengths, strict=True))
    return list(chain.from_iterable(both))


def has_varlen_attention(device: torch.device) -> bool:
    """Whether the device supports attention over texts of different lengths in one call."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= AMPERE


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; copies to a GPU do not block."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def position_ids(lengths: Sequence[int], *, first: int = 0) -> Tensor:
    """``[N]``: the position of each token in its own text, counted from ``first``."""
    counts = torch.tensor(lengths)
    starts = counts.cumsum(dim=0) - counts
    return torch.arange(first, first + int(counts.sum())) - starts.repeat_interleave(counts)


def filler_rows(rows: int) -> int:
    """How many rows to add so that matrix products have few different sizes.

    oneDNN caches code for each size. Filling up costs 3% on average at 2,048 tokens and keeps memory flat.
    """
    step = 8 if rows <= 64 else 32 if rows <= 512 else 128
    return -rows % step


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packing: Packing | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **other: Any,
) -> tuple[Tensor, None]:
    """Attention within each text of a packed sequence, or torch's own if nothing is packed.

    Args:
        module: the attention layer.
        query: ``[1, heads, N, head width]``, as ``key`` and ``value``, or ``[B, heads, T, head width]``.
        attention_mask: used only where ``packing`` is None.
        packing: the runs that make up the sequence, on a GPU the bounds of its texts, or their padding.
        sliding_window: tokens at this distance or farther do not attend to each other.
        other: what transformers passes to every attention function.

    Returns:
        ``[1, N, heads, head width]``, or ``[B, T, heads, head width]``
    """
    if packing is None:
        if attention_mask is not None and attention_mask.is_floating_point():
            attention_mask = attention_mask.to(query.dtype)  # as GPU kernels require
        attended, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **other
        )
        return attended, None
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if isinstance(packing, Padding):
        seen = packing.mask[:, None, None]
        padded = scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scale)
        return padded.transpose(1, 2).contiguous(), None
    rows = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]  # 3 x [N, heads, head width]
    if isinstance(packing, Bounds):
        return _attend_varlen(packing, *rows, scale=scale).unsqueeze(0), None
    parts = []
    for start, texts, tokens, bias in packing:
        run = (
            row[start : start + texts * tokens].unflatten(dim=0, sizes=(texts, tokens)).transpose(1, 2)
            for row in rows
        )  # 3 x [texts, heads, tokens, head width]
        attended = _attend(*run, bias=bias, scale=scale, dropout=dropout, window=sliding_window)
        parts.append(attended.transpose(1, 2).flatten(0, 1))  # [texts * tokens, heads, head width]
    return torch.cat(parts).unsqueeze(0), None


def _attend_varlen(bounds: Bounds, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
    query = query * (scale * query.shape[-1] ** 0.5)  # the kernel itself divides by the square root
    attended = varlen_attn(query, key, value, bounds.rows, bounds.rows, bounds.longest, bounds.longest)
    return cast("Tensor", attended)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    bias: Tensor | None,
    scale: float,
    dropout: float,
    window: int | None,
) -> Tensor:
    tokens = query.shape[-2]
    mask = None if bias is None else bias.to(query.dtype)
    if window is not None and window < tokens:  # never combined with separate texts
        mask = _window_mask(tokens, window, query.device)
    elif query.device.type == "cpu" and tokens <= PLAIN_UP_TO and not dropout:
        # not in bfloat16: for such products torch caches a megabyte per batch size
        wide = torch.promote_types(query.dtype, torch.float32)
        weights = (query.to(wide) * scale) @ key.to(wide).transpose(-1, -2)  # [texts, heads, tokens, tokens]
        if bias is not None:
            weights = weights + bias
        return (weights.softmax(dim=-1) @ value.to(wide)).to(query.dtype)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale)


def _window_mask(tokens: int, window: int, device: torch.device) -> Tensor:
    position = torch.arange(tokens, device=device)
    return (position[:, None] - position[None, :]).abs() < window


def _attention_mask(*, attention_mask: Tensor | None, **other: Any) -> Tensor | None:
    """No mask for a packed sequence, which has no padding; torch's own otherwise."""
    return None if attention_mask is None else sdpa_mask(attention_mask=attention_mask, **other)


AttentionInterface.register(IMPLEMENTATION, packed_attention)
AttentionMaskInterface.register(IMPLEMENTATION, _attention_mask)
