"""The states of a pair to its outputs, and outputs to scores."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tercet.config import Activation, CrossConfig
from tercet.models.encoder import TokenStates
from tercet.models.pooling import first, mean


class Head(nn.Module):
    """Dropout, dense, activation, norm, dropout, linear; all but the last may be absent."""

    def __init__(
        self,
        linear: nn.Linear,
        *,
        dense: nn.Linear | None = None,
        activation: nn.Module | None = None,
        norm: nn.Module | None = None,
        drops_first: bool = False,
        averages: bool = False,
    ) -> None:
        super().__init__()
        self.linear = linear
        self.dense = dense
        self.activation = activation
        self.norm = norm
        self.before, self.after = nn.Dropout(0.0), nn.Dropout(0.0)
        self.drops_first = drops_first
        self.averages = averages

    def set_dropout(self, share: float) -> None:
        """Before the last layer and, in some heads, before the dense one; a lone linear layer has none."""
        self.after.p = 0.0 if self.dense is None else share
        self.before.p = self.after.p if self.drops_first else 0.0

    def facts(self) -> dict[str, Any]:
        """What decides its outputs beside the weights."""
        return {"activation": type(self.activation).__name__, "averages": self.averages}

    def forward(self, tokens: TokenStates, starts: Sequence[int] = ()) -> Tensor:
        """``[B, k]``, in float32: half precision would make ties of scores that differ."""
        vectors = (mean if self.averages else first)(tokens.states.float(), tokens.mask)
        if self.dense is not None:
            vectors = self.dense(self.before(vectors))
        if self.activation is not None:
            vectors = self.activation(vectors)
        if self.norm is not None:
            vectors = self.norm(vectors)
        outputs: Tensor = self.linear(self.after(vectors))
        return outputs


def new_head(config: CrossConfig, *, width: int, seed: int) -> Head:
    """A head before training, ``linear`` or ``dense``, with BERT's spread of weights."""
    generator = torch.Generator().manual_seed(seed)
    linear = _new_linear(width, config.outputs, generator)
    if config.head == "linear":
        return Head(linear)
    dense = _new_linear(width, width, generator)
    return Head(linear, dense=dense, activation=nn.GELU(), drops_first=True)


def activate(outputs: Tensor, activation: Activation) -> Tensor:
    """Outputs ``[B, k]`` to scores, in float32."""
    outputs = outputs.float()
    if activation == "sigmoid":
        return outputs.sigmoid()
    if activation == "softmax":
        return outputs.softmax(dim=-1)
    return outputs.tanh() if activation == "tanh" else outputs


def _new_linear(incoming: int, outgoing: int, generator: torch.Generator) -> nn.Linear:
    linear = nn.Linear(incoming, outgoing)
    with torch.no_grad():
        linear.weight.normal_(mean=0.0, std=0.02, generator=generator)
        linear.bias.zero_()
    return linear
