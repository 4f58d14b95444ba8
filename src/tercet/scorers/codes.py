"""Token states to the codes of a context, in the four ways of Humeau et al. (2020)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from tercet.encoders.encoder import TokenStates
from tercet.scorers.overflow import normalize
from tercet.settings.models import CodeKind, PolyConfig


class CodeTensors(NamedTuple):
    """``vectors`` ``[B, M, D]`` and ``mask`` ``[B, M]``, false where a short context has no code."""

    vectors: Tensor
    mask: Tensor

    def take(self, contexts: "Tensor | slice") -> "CodeTensors":
        """The codes of a subset of the contexts."""
        return CodeTensors(self.vectors[contexts], self.mask[contexts])


class Scale(nn.Module):
    """A positive factor, fixed or learnt. A learnt one is stored as its logarithm: steps are relative."""

    def __init__(self, value: float, *, learnable: bool) -> None:
        super().__init__()
        self.start = value
        self.log = nn.Parameter(torch.tensor(math.log(value))) if learnable else None

    def forward(self) -> float | Tensor:
        """The current value, with a gradient if it is learnt."""
        return self.start if self.log is None else self.log.exp()

    @property
    def value(self) -> float:
        """The current value."""
        return self.start if self.log is None else float(self.log.detach().exp())


class CodeLayer(nn.Module):
    """The part of a poly-encoder that is not a transformer: its codes and scales."""

    def __init__(self, config: PolyConfig, *, width: int, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        learnt = config.code_kind == "learnt"
        self.codes = nn.Parameter(new_codes(config.codes, width, seed=seed)) if learnt else None
        self.code_scale = Scale(config.code_scale, learnable=config.learn_scales and learnt)
        self.candidate_scale = Scale(config.candidate_scale, learnable=config.learn_scales)
        self.logit_scale = Scale(config.logit_scale, learnable=config.learn_scales)

    def forward(self, tokens: TokenStates) -> CodeTensors:
        """The codes of each context, in float32 or better."""
        states = _float32(tokens.states)
        if self.codes is None:
            chosen, present = chosen_tokens(tokens.mask, self.config.code_kind, self.config.codes)
            return CodeTensors(self._normalized(states_at(states, chosen, present)), present)
        with torch.autocast(states.device.type, enabled=False):
            vectors = self._attention(self.codes, states, tokens.mask) @ states
        return CodeTensors(self._normalized(vectors), torch.ones_like(vectors[..., 0], dtype=torch.bool))

    def attention(self, tokens: TokenStates) -> Tensor:
        """``[B, M, T]``: the weight of each token in each code."""
        if self.codes is not None:
            return self._attention(self.codes, _float32(tokens.states), tokens.mask)
        chosen, present = chosen_tokens(tokens.mask, self.config.code_kind, self.config.codes)
        return one_hot(chosen, tokens.mask.shape[1]).float() * present.unsqueeze(-1)

    def _normalized(self, vectors: Tensor) -> Tensor:
        return normalize(vectors) if self.config.similarity == "cosine" else vectors

    def _attention(self, codes: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        return attention_of_codes(codes.to(states.dtype), states, mask, scale=self.code_scale())


def new_codes(count: int, width: int, *, seed: int) -> Tensor:
    """``[M, D]``: initial learnt codes, random directions of norm about 1."""
    return torch.empty(count, width).normal_(
        mean=0.0, std=width**-0.5, generator=torch.Generator().manual_seed(seed)
    )


def attention_of_codes(codes: Tensor, states: Tensor, mask: Tensor, *, scale: float | Tensor) -> Tensor:
    """``[B, M, T]``: the attention of learnt codes over the tokens; padding gets 0.

    Args:
        codes: ``[M, D]``
        states: ``[B, T, D]``
        mask: ``[B, T]``, false for padding.
        scale: multiplies the logits.
    """
    logits = (scale * codes) @ states.transpose(1, 2)  # [B, M, T]
    return logits.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(dim=-1)


def chosen_tokens(mask: Tensor, kind: CodeKind, count: int) -> tuple[Tensor, Tensor]:
    """``[B, M]`` twice: the tokens that serve as codes, and whether a short context has that many.

    Args:
        mask: ``[B, T]``, true for the tokens of each text, then false.
        kind: ``first``, ``last`` or ``last_and_first``, which is one more and never repeats a token.
        count: m
    """
    lengths = mask.sum(dim=1, keepdim=True)  # [B, 1]
    most = count + 1 if kind == "last_and_first" else count
    taken = lengths.clamp(max=most)
    positions = torch.arange(min(most, mask.shape[1]), device=mask.device).expand(len(mask), -1)  # [B, M]
    present = positions < taken
    tokens = positions if kind == "first" else positions + lengths - taken
    if kind == "last_and_first":
        tokens = torch.where(positions == 0, 0, tokens)
    return torch.where(present, tokens, 0), present


def states_at(states: Tensor, tokens: Tensor, present: Tensor) -> Tensor:
    """``[B, M, D]``: the states of the chosen tokens, zeros where there is none."""
    picked = states.gather(1, tokens.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
    return picked * present.unsqueeze(-1)


def _float32(states: Tensor) -> Tensor:
    return states.to(torch.promote_types(states.dtype, torch.float32))
