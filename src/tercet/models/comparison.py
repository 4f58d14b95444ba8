"""A head that compares the two texts of a pair, each read in the light of the other."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from tercet.config import Activation
from tercet.models.encoder import TokenStates
from tercet.models.pooling import mean

STEEPNESS = 10.0
"""Of the cosine, before training, where candidates are ranked."""

SIGMOID_STEEPNESS = 5.0
"""The same where a sigmoid follows, which is then near the cosine itself: 0.08 at 0, 0.92 at 1."""


class Comparison(nn.Module):
    """Linear on (u, v, |u − v|, u ∗ v), where u and v are the mean states of context and candidate.

    A backbone that has learnt to compare by the cosine of means, as sentence encoders have, begins from what
    it knows: before training the output is a cosine. The first state of such a backbone says nothing then.
    """

    def __init__(self, *, width: int, activation: Activation = "identity") -> None:
        super().__init__()
        self.linear = nn.Linear(4 * width, 1)
        steepness = SIGMOID_STEEPNESS if activation == "sigmoid" else STEEPNESS
        with torch.no_grad():
            self.linear.weight.zero_()
            self.linear.weight[:, -width:] = steepness
            self.linear.bias.fill_(-steepness / 2)

    def set_dropout(self, share: float) -> None:
        """It has none."""

    def facts(self) -> dict[str, Any]:
        """What decides its outputs beside the weights."""
        return {"compares": True}

    def forward(self, tokens: TokenStates, starts: Sequence[int]) -> Tensor:
        """``[B, 1]``, in float32; ``starts`` are the places where the candidates begin."""
        places = torch.arange(tokens.mask.shape[1], device=tokens.mask.device)
        is_candidate = places >= torch.tensor(starts, device=places.device).unsqueeze(1)  # [B, T]
        states = tokens.states.float()
        context = normalize(mean(states, tokens.mask & ~is_candidate), dim=-1)
        candidate = normalize(mean(states, tokens.mask & is_candidate), dim=-1)
        parts = (context, candidate, (context - candidate).abs(), context * candidate)
        outputs: Tensor = self.linear(torch.cat(parts, dim=-1))
        return outputs
