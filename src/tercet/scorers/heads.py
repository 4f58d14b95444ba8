"""Heads of cross-encoders: the states of a pair to its outputs, and outputs to scores."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tercet.encoders.encoder import TokenStates
from tercet.scorers.overflow import nan_if_infinite, normalize
from tercet.scorers.pooling import first, mean
from tercet.settings.models import Activation

STEEPNESS = 10.0
"""Initial factor of the cosine in a comparison head."""

SIGMOID_STEEPNESS = 5.0
"""The same before a sigmoid, whose value is then close to the cosine: 0.08 at 0, 0.92 at 1."""

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "identity": lambda outputs: outputs,
    "sigmoid": torch.sigmoid,
    "softmax": lambda outputs: outputs.softmax(dim=-1),
    "tanh": torch.tanh,
}


class Head(nn.Module):
    """Dropout, dense, activation, norm, dropout, linear; all but the last are optional."""

    def __init__(
        self,
        linear: nn.Linear,
        *,
        dense: nn.Linear | None = None,
        activation: nn.Module | None = None,
        norm: nn.Module | None = None,
        drops_first: bool = False,
        uses_mean: bool = False,
    ) -> None:
        super().__init__()
        self.linear = linear
        self.dense = dense
        self.activation = activation
        self.norm = norm
        self.before, self.after = nn.Dropout(0.0), nn.Dropout(0.0)
        self.drops_first = drops_first
        self.uses_mean = uses_mean

    def set_dropout(self, share: float) -> None:
        """Set dropout before the last layer and, in some heads, before the dense one; a lone layer has
        none."""
        self.after.p = 0.0 if self.dense is None else share
        self.before.p = self.after.p if self.drops_first else 0.0

    def fingerprint_inputs(self) -> dict[str, Any]:
        """What determines the outputs apart from the weights."""
        return {"activation": type(self.activation).__name__, "uses_mean": self.uses_mean}

    def forward(self, tokens: TokenStates, starts: Sequence[int] = ()) -> Tensor:
        """``[B, k]`` in float32: half precision would tie scores that differ."""
        vectors = (mean if self.uses_mean else first)(tokens.states.float(), tokens.mask)
        if self.dense is not None:
            vectors = self.dense(self.before(vectors))
        if self.activation is not None:
            vectors = self.activation(nan_if_infinite(vectors))
        if self.norm is not None:
            vectors = self.norm(vectors)
        outputs: Tensor = self.linear(self.after(vectors))
        return outputs


class ComparisonHead(nn.Module):
    """A linear layer on (u, v, |u - v|, u * v), where u and v are the mean states of context and candidate.

    Before training, the output is the cosine of u and v. So a sentence encoder, whose first state is
    untrained, keeps what it has learnt.
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
        """Do nothing: this head has no dropout."""

    def fingerprint_inputs(self) -> dict[str, Any]:
        """What determines the outputs apart from the weights."""
        return {"compares": True}

    def forward(self, tokens: TokenStates, starts: Sequence[int]) -> Tensor:
        """``[B, 1]`` in float32; ``starts`` are the positions where the candidates begin."""
        positions = torch.arange(tokens.mask.shape[1], device=tokens.mask.device)
        is_candidate = positions >= torch.tensor(starts, device=positions.device).unsqueeze(1)  # [B, T]
        states = tokens.states.float()
        context = normalize(mean(states, tokens.mask & ~is_candidate))
        candidate = normalize(mean(states, tokens.mask & is_candidate))
        parts = (context, candidate, (context - candidate).abs(), context * candidate)
        outputs: Tensor = self.linear(torch.cat(parts, dim=-1))
        return outputs


def new_linear_head(*, width: int, outputs: int, seed: int) -> Head:
    """One untrained layer on the first state."""
    return Head(_new_linear(width, outputs, torch.Generator().manual_seed(seed)))


def new_dense_head(*, width: int, outputs: int, seed: int) -> Head:
    """Two untrained layers on the first state, with a GELU between them."""
    generator = torch.Generator().manual_seed(seed)
    linear = _new_linear(width, outputs, generator)
    dense = _new_linear(width, width, generator)
    return Head(linear, dense=dense, activation=nn.GELU(), drops_first=True)


def activate(outputs: Tensor, activation: Activation) -> Tensor:
    """Outputs ``[B, k]`` to scores, in float32."""
    return ACTIVATIONS[activation](nan_if_infinite(outputs.float()))


def _new_linear(incoming: int, outgoing: int, generator: torch.Generator) -> nn.Linear:
    """A layer with BERT's initial standard deviation."""
    linear = nn.Linear(incoming, outgoing)
    with torch.no_grad():
        linear.weight.normal_(mean=0.0, std=0.02, generator=generator)
        linear.bias.zero_()
    return linear
