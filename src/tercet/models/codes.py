"""Token states to the codes of a context: the four ways of Humeau et al. (2020)."""

import torch
from torch import Tensor

from tercet.config import CodeKind


def new_codes(count: int, width: int, *, seed: int) -> Tensor:
    """``[M, D]``: learnt codes before training, of length about 1, each in a direction of its own."""
    return torch.empty(count, width).normal_(
        mean=0.0, std=width**-0.5, generator=torch.Generator().manual_seed(seed)
    )


def attention_of_codes(codes: Tensor, states: Tensor, mask: Tensor, *, scale: float | Tensor) -> Tensor:
    """``[B, M, T]``: how much each learnt code takes of each token; padding gets nothing.

    Args:
        codes: ``[M, D]``
        states: ``[B, T, D]``
        mask: ``[B, T]``, false where a text has ended.
        scale: what the products are multiplied by.
    """
    logits = (scale * codes) @ states.transpose(1, 2)  # [B, M, T]
    return logits.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(dim=-1)


def chosen_tokens(mask: Tensor, kind: CodeKind, count: int) -> tuple[Tensor, Tensor]:
    """``[B, M]``: which tokens are the codes, and where a short context has none left.

    Args:
        mask: ``[B, T]``, true for the tokens of each text, then false.
        kind: ``first``, ``last`` or ``last_and_first``, which is one more, and never the same token twice.
        count: m
    """
    lengths = mask.sum(dim=1, keepdim=True)  # [B, 1]
    most = count + 1 if kind == "last_and_first" else count
    taken = lengths.clamp(max=most)
    places = torch.arange(min(most, mask.shape[1]), device=mask.device).expand(len(mask), -1)  # [B, M]
    present = places < taken
    tokens = places if kind == "first" else places + lengths - taken
    if kind == "last_and_first":
        tokens = torch.where(places == 0, 0, tokens)
    return torch.where(present, tokens, 0), present


def states_at(states: Tensor, tokens: Tensor, present: Tensor) -> Tensor:
    """``[B, M, D]``: the states of the chosen tokens, zeros where there is none."""
    picked = states.gather(1, tokens.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
    return picked * present.unsqueeze(-1)
