"""Token states to one vector per text; padding never counts.

Each function takes ``states [B, T, D]`` and ``mask [B, T]``, true for the tokens that count, and gives
``[B, D]``. Every text has at least one token that counts.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tercet.config import PoolingConfig, PoolingKind


def first(states: Tensor, mask: Tensor) -> Tensor:
    """The state of the first token."""
    return _pick(states, mask.int().argmax(dim=1))


def last(states: Tensor, mask: Tensor) -> Tensor:
    """The state of the last token."""
    return _pick(states, mask.shape[1] - 1 - mask.flip(1).int().argmax(dim=1))


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """The average over the tokens."""
    return _total(states, mask) / mask.sum(dim=1, keepdim=True)


def mean_sqrt(states: Tensor, mask: Tensor) -> Tensor:
    """The sum over the tokens, divided by the square root of their number."""
    return _total(states, mask) / mask.sum(dim=1, keepdim=True).sqrt()


def weighted_mean(states: Tensor, mask: Tensor) -> Tensor:
    """The average in which a token weighs as much as its place in the text: 1, 2, 3, ..."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device, dtype=states.dtype)
    weights = mask * places  # [B, T]
    return _total(states, weights) / weights.sum(dim=1, keepdim=True)


def mean_first(states: Tensor, mask: Tensor, *, tokens: int) -> Tensor:
    """The average over the first ``tokens`` tokens, or over all where a text has fewer."""
    return mean(states, mask & (mask.cumsum(dim=1) <= tokens))


def maximum(states: Tensor, mask: Tensor) -> Tensor:
    """The largest value of each dimension over the tokens."""
    return states.masked_fill(~mask.unsqueeze(-1), float("-inf")).amax(dim=1)


def pool(states: Tensor, mask: Tensor, config: PoolingConfig) -> Tensor:
    """``[B, kinds * D]``: the poolings that ``config`` names, side by side, in float32."""
    states = states.float()
    parts = [
        mean_first(states, mask, tokens=config.first_tokens)
        if kind == "mean_first"
        else _POOLINGS[kind](states, mask)
        for kind in config.kinds
    ]
    return torch.cat(parts, dim=-1)


def without_prompt(mask: Tensor, tokens: int) -> Tensor:
    """``mask`` less the first ``tokens`` tokens of each text, unless a text would be left with none."""
    kept = mask & (mask.cumsum(dim=1) > tokens)
    return torch.where(kept.any(dim=1, keepdim=True), kept, mask)


def _total(states: Tensor, weights: Tensor) -> Tensor:
    return (states * weights.unsqueeze(-1)).sum(dim=1)


def _pick(states: Tensor, tokens: Tensor) -> Tensor:
    """``[B, D]``: of each text, the state of one token."""
    return states[torch.arange(len(states), device=states.device), tokens]


_POOLINGS: dict[PoolingKind, Callable[[Tensor, Tensor], Tensor]] = {
    "first": first,
    "last": last,
    "max": maximum,
    "mean": mean,
    "mean_sqrt": mean_sqrt,
    "weighted_mean": weighted_mean,
}
