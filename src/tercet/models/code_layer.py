"""The part of a poly-encoder that is not a transformer: its codes and its scales."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from tercet.config import PolyConfig
from tercet.models.codes import attention_of_codes, chosen_tokens, new_codes, states_at
from tercet.models.encoder import TokenStates
from tercet.models.scale import Scale


class CodeTensors(NamedTuple):
    """``vectors`` ``[B, M, D]`` and ``mask`` ``[B, M]``, false where a short context has no code."""

    vectors: Tensor
    mask: Tensor


class CodeLayer(nn.Module):
    """Token states to codes."""

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
        states = _precise(tokens.states)
        if self.codes is None:
            chosen, present = chosen_tokens(tokens.mask, self.config.code_kind, self.config.codes)
            return CodeTensors(self._measured(states_at(states, chosen, present)), present)
        with torch.autocast(states.device.type, enabled=False):
            vectors = self._attention(self.codes, states, tokens.mask) @ states
        return CodeTensors(self._measured(vectors), torch.ones_like(vectors[..., 0], dtype=torch.bool))

    def attention(self, tokens: TokenStates) -> Tensor:
        """``[B, M, T]``: how much of each token is in each code."""
        if self.codes is not None:
            return self._attention(self.codes, _precise(tokens.states), tokens.mask)
        chosen, present = chosen_tokens(tokens.mask, self.config.code_kind, self.config.codes)
        return one_hot(chosen, tokens.mask.shape[1]).float() * present.unsqueeze(-1)

    def _measured(self, vectors: Tensor) -> Tensor:
        return normalize(vectors, dim=-1) if self.config.similarity == "cosine" else vectors

    def _attention(self, codes: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        return attention_of_codes(codes.to(states.dtype), states, mask, scale=self.code_scale())


def _precise(states: Tensor) -> Tensor:
    return states.to(torch.promote_types(states.dtype, torch.float32))
