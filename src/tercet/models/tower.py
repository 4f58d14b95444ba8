"""Text to vector: an encoder, a pooling, and the small layers behind it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import normalize

from tercet.config import PoolingConfig
from tercet.errors import InputError
from tercet.models.encoder import Encoder
from tercet.models.pooling import pool, without_prompt


class Dense(nn.Module):
    """A linear layer and its activation, with a way around it on request."""

    def __init__(
        self, linear: nn.Linear, activation: nn.Module, *, residual: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation
        self.residual = residual

    def forward(self, vectors: Tensor) -> Tensor:
        """``[B, in]`` to ``[B, out]``"""
        changed: Tensor = self.activation(self.linear(vectors))
        return changed if self.residual is None else changed + self.residual(vectors)


class Normalise(nn.Module):
    """Every vector divided by its length."""

    def forward(self, vectors: Tensor) -> Tensor:
        """``[B, D]`` to ``[B, D]`` of length 1."""
        return normalize(vectors, dim=-1)


class Narrow(nn.Module):
    """The first ``width`` dimensions only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        if width < 1:
            raise InputError(f"vectors need at least 1 dimension, got {width}")
        self.width = width

    def forward(self, vectors: Tensor) -> Tensor:
        """``[B, D]`` to ``[B, width]``"""
        return vectors[:, : self.width]


class Tower(nn.Module):
    """One side of a dual encoder."""

    def __init__(self, encoder: Encoder, pooling: PoolingConfig, layers: Iterable[nn.Module] = ()) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.layers = nn.ModuleList(layers)

    def forward(self, ids: Sequence[Sequence[int]], *, prompt_tokens: int = 0) -> Tensor:
        """``[B, D]``: a vector for each text, the first ``prompt_tokens`` of which are its prompt."""
        states, mask = self.encoder(ids)
        if prompt_tokens and not self.pooling.include_prompt:
            mask = without_prompt(mask, prompt_tokens)
        vectors = pool(states, mask, self.pooling)
        for layer in self.layers:
            vectors = layer(vectors)
        return vectors

    def facts(self) -> dict[str, Any]:
        """All that decides a vector beside the weights."""
        layers = [
            [type(part).__name__ for part in layer.modules()] + [getattr(layer, "width", 0)]
            for layer in self.layers
        ]
        pooling = asdict(self.pooling)
        if "mean_first" not in self.pooling.kinds:
            del pooling["first_tokens"]  # decides nothing
        return {**self.encoder.facts(), "pooling": pooling, "layers": layers}

    @property
    def width(self) -> int:
        """D, the length of a vector."""
        width = self.encoder.width * len(self.pooling.kinds)
        for layer in self.layers:
            if isinstance(layer, Dense):
                width = layer.linear.out_features
            elif isinstance(layer, Narrow):
                width = min(width, layer.width)
        return width
