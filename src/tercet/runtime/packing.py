"""Attention over texts that lie one after the other, without padding between them.

A transformer spends most of its time in linear layers, which do not care where a text ends. So the tokens
of a whole batch go through as one row ``[1, N, D]``, and only the attention looks at one text at a time:
texts of equal length that lie side by side are attended to in one call. Transformers lets a model take its
attention function from a registry; ours is registered once under ``IMPLEMENTATION``, and it is handed the
lengths with each forward pass, so a model can serve several threads. On a GPU one kernel attends to texts
of all lengths at once, in half precision.
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
"""On a CPU, plain matrix products beat torch's fused kernel up to about this many tokens (by 3x at 16)."""


AMPERE = (8, 0)
"""The first NVIDIA GPUs that can attend to texts of all lengths at once."""


class Run(NamedTuple):
    """Texts of equal length, side by side: ``texts`` of them, ``tokens`` each, from row ``start``."""

    start: int
    texts: int
    tokens: int
    bias: Tensor | None = None
    """``[texts, 1, tokens, tokens]``: what is added to the attention of one token to another."""


class Bounds(NamedTuple):
    """Texts of any lengths, side by side on a GPU: text i fills the rows ``rows[i]`` to ``rows[i + 1]``."""

    rows: Tensor
    longest: int


Packing: TypeAlias = Sequence[Run] | Bounds


class Aside(NamedTuple):
    """Pairs whose texts are each read as if alone, with the other one aside.

    ``starts`` are the places where the second texts begin; ``weight`` is what attention to the other text is
    multiplied by before its shares are made to sum to 1, 0 for none.
    """

    starts: Sequence[int]
    weight: float


def runs_of(lengths: Sequence[int]) -> list[Run]:
    """The runs of equal lengths, in order."""
    runs: list[Run] = []
    start = 0
    for tokens, equal in groupby(lengths):
        texts = sum(1 for _ in equal)
        runs.append(Run(start, texts, tokens))
        start += texts * tokens
    return runs


def bounds_of(lengths: Sequence[int], device: torch.device) -> Bounds:
    """Where texts of these lengths begin and end."""
    rows = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
    return Bounds(moved(rows, device), max(lengths))


def packing_of(lengths: Sequence[int], device: torch.device, aside: Aside | None = None) -> Packing:
    """How texts of these lengths lie, as attention wants to know it on this device."""
    runs = runs_of(lengths)
    if aside is None:
        return runs if device.type == "cpu" else bounds_of(lengths, device)
    starts = iter(aside.starts)
    pairs = [Aside(list(islice(starts, run.texts)), aside.weight) for run in runs]
    return [run._replace(bias=bias_of(each, run.tokens)) for run, each in zip(runs, pairs, strict=True)]


def bias_of(aside: Aside, tokens: int, device: torch.device | None = None) -> Tensor:
    """``[B, 1, T, T]``: what is added to the attention of one token to another.

    Args:
        tokens: T, the length of a pair.
    """
    places, starts = torch.arange(tokens), torch.tensor(aside.starts).unsqueeze(1)
    is_second = (places >= starts).to(device)  # [B, T]
    differ = is_second.unsqueeze(2) != is_second.unsqueeze(1)
    added = math.log(aside.weight) if aside.weight else -math.inf
    return torch.zeros(differ.shape, device=device).masked_fill(differ, added).unsqueeze(1)


def lengths_alone(lengths: Sequence[int], aside: Aside) -> list[int]:
    """Of pairs so long, the lengths of their texts."""
    both = ((start, whole - start) for start, whole in zip(aside.starts, lengths, strict=True))
    return list(chain.from_iterable(both))


def has_varying_attention(device: torch.device) -> bool:
    """Whether the device can attend to texts of all lengths at once."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= AMPERE


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; on its way to a GPU nobody waits for it."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def positions_of(lengths: Sequence[int], *, first: int = 0) -> Tensor:
    """``[N]``: each token's place in its own text, counted from ``first``."""
    counts = torch.tensor(lengths)
    starts = counts.cumsum(0) - counts
    return torch.arange(first, first + int(counts.sum())) - starts.repeat_interleave(counts)


def filler_rows(rows: int) -> int:
    """How many rows to add, so that products come in few sizes; oneDNN keeps code for each it meets.

    A row of 2,048 tokens is 3% longer for it on average, and memory stays flat.
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
    """Attend within each text of a packed row, or as usual if nothing is packed.

    Args:
        module: the attention layer that calls.
        query: ``[1, heads, N, head width]``, as ``key`` and ``value``.
        attention_mask: used only where ``packing`` is None.
        packing: the runs that fill the row, or, on a GPU, the bounds of its texts.
        sliding_window: tokens this far apart, or farther, do not see each other.
        other: what transformers passes to every attention function.

    Returns:
        ``[1, N, heads, head width]``
    """
    if packing is None:
        if attention_mask is not None and attention_mask.is_floating_point():
            attention_mask = attention_mask.to(query.dtype)  # a GPU's kernels want it so
        attended, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **other
        )
        return attended, None
    rows = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]  # 3 x [N, heads, head width]
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if isinstance(packing, Bounds):
        return _attend_at_once(packing, *rows, scale=scale).unsqueeze(0), None
    parts = []
    for start, texts, tokens, bias in packing:
        run = (
            row[start : start + texts * tokens].unflatten(dim=0, sizes=(texts, tokens)).transpose(1, 2)
            for row in rows
        )  # 3 x [texts, heads, tokens, head width]
        attended = _attend(*run, bias=bias, scale=scale, dropout=dropout, window=sliding_window)
        parts.append(attended.transpose(1, 2).flatten(0, 1))  # [texts * tokens, heads, head width]
    return torch.cat(parts).unsqueeze(0), None


def _attend_at_once(bounds: Bounds, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
    query = query * (scale * query.shape[-1] ** 0.5)  # the kernel divides by that root
    attended = varlen_attn(query, key, value, bounds.rows, bounds.rows, bounds.longest, bounds.longest)
    return cast("Tensor", attended)  # alone, as nothing beside it was asked for


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
    if window is not None and window < tokens:  # which no pair has that is read aside
        mask = _near(tokens, window, query.device)
    elif query.device.type == "cpu" and tokens <= PLAIN_UP_TO and not dropout:
        # not in bfloat16: of such a product torch keeps a megabyte for each number of texts it meets
        wide = torch.promote_types(query.dtype, torch.float32)
        weights = (query.to(wide) * scale) @ key.to(wide).transpose(-1, -2)  # [texts, heads, tokens, tokens]
        if bias is not None:
            weights = weights + bias
        return (weights.softmax(dim=-1) @ value.to(wide)).to(query.dtype)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale)


def _near(tokens: int, window: int, device: torch.device) -> Tensor:
    place = torch.arange(tokens, device=device)
    return (place[:, None] - place[None, :]).abs() < window


def _mask(*, attention_mask: Tensor | None, **other: Any) -> Tensor | None:
    """No mask for a packed row, which has no padding; torch's own otherwise."""
    return None if attention_mask is None else sdpa_mask(attention_mask=attention_mask, **other)


AttentionInterface.register(IMPLEMENTATION, packed_attention)
AttentionMaskInterface.register(IMPLEMENTATION, _mask)
