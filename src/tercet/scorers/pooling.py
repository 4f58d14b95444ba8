"""Poolings: token states to one vector per text.

Each function takes ``states [B, T, D]``, ``mask [B, T]`` (true for the tokens that count, at least one per
text) and the settings, and returns ``[B, D]``. A new pooling is a function here, an entry in ``POOLINGS`` and
a name in ``settings.models.PoolingKind``.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tercet.settings.models import PoolingConfig, PoolingKind


def first(states: Tensor, mask: Tensor) -> Tensor:
    """The state of the first token."""
    return _pick(states, mask.int().argmax(dim=1))


def last(states: Tensor, mask: Tensor) -> Tensor:
    """The state of the last token."""
    return _pick(states, mask.shape[1] - 1 - mask.flip(1).int().argmax(dim=1))


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean over the tokens."""
    return _total(states, mask) / mask.sum(dim=1, keepdim=True)


def mean_sqrt(states: Tensor, mask: Tensor) -> Tensor:
    """The sum over the tokens, divided by the square root of their number."""
    return _total(states, mask) / mask.sum(dim=1, keepdim=True).sqrt()


def weighted_mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean with weights 1, 2, 3, ... by position."""
    positions = torch.arange(1, mask.shape[1] + 1, device=mask.device, dtype=states.dtype)
    weights = mask * positions  # [B, T]
    return _total(states, weights) / weights.sum(dim=1, keepdim=True)


def mean_first(states: Tensor, mask: Tensor, *, tokens: int) -> Tensor:
    """The mean over the first ``tokens`` tokens, or over all if a text has fewer."""
    return mean(states, mask & (mask.cumsum(dim=1) <= tokens))


def maximum(states: Tensor, mask: Tensor) -> Tensor:
    """The maximum of each dimension over the tokens."""
    return states.masked_fill(~mask.unsqueeze(-1), float("-inf")).amax(dim=1)


POOLINGS: dict[PoolingKind, Callable[[Tensor, Tensor, PoolingConfig], Tensor]] = {
    "first": lambda states, mask, _: first(states, mask),
    "last": lambda states, mask, _: last(states, mask),
    "max": lambda states, mask, _: maximum(states, mask),
    "mean": lambda states, mask, _: mean(states, mask),
    "mean_first": lambda states, mask, config: mean_first(states, mask, tokens=config.first_tokens),
    "mean_sqrt": lambda states, mask, _: mean_sqrt(states, mask),
    "weighted_mean": lambda states, mask, _: weighted_mean(states, mask),
}


def pool(states: Tensor, mask: Tensor, config: PoolingConfig) -> Tensor:
    """``[B, kinds * D]``: the concatenated poolings, in float32."""
    states = states.float()
    return torch.cat([POOLINGS[kind](states, mask, config) for kind in config.kinds], dim=-1)


def pooled_parts(states: Tensor, mask: Tensor, config: PoolingConfig) -> Tensor:
    """``[B, T, kinds * D]``: the part of each token in the pooled vector; the parts add up to it.

    Each dimension of a pooling is a function f of the same dimension of the states x, and f(ax) = a f(x) for
    a > 0. By Euler's theorem, f(x) is then the sum of x_t ∂f/∂x_t over the tokens. For a maximum, the token
    that has it gets everything.
    """
    with torch.inference_mode(mode=False), torch.enable_grad():
        leaf = states.float().clone().requires_grad_()
        totals = [POOLINGS[kind](leaf, mask.clone(), config).sum() for kind in config.kinds]
        slopes = [torch.autograd.grad(total, leaf)[0] for total in totals]
    return torch.cat([(leaf * slope).detach() for slope in slopes], dim=-1)


def without_prompt(mask: Tensor, tokens: int) -> Tensor:
    """``mask`` without the first ``tokens`` tokens of each text, unless nothing would be left."""
    kept = mask & (mask.cumsum(dim=1) > tokens)
    return torch.where(kept.any(dim=1, keepdim=True), kept, mask)


def _total(states: Tensor, weights: Tensor) -> Tensor:
    return (states * weights.unsqueeze(-1)).sum(dim=1)


def _pick(states: Tensor, tokens: Tensor) -> Tensor:
    """``[B, D]``: the state of one token of each text."""
    return states[torch.arange(len(states), device=states.device), tokens]
