"""Token ids to a vector: an encoder, a pooling, and small layers after it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn

from tercet.encoders.encoder import Encoder, TokenStates
from tercet.errors import InputError
from tercet.scorers.overflow import nan_if_infinite, normalize, norms
from tercet.scorers.pooling import pool, pooled_parts, without_prompt
from tercet.settings.models import PoolingConfig


class Dense(nn.Module):
    """A linear layer and its activation, optionally with a residual connection."""

    def __init__(
        self, linear: nn.Linear, activation: nn.Module, *, residual: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation
        self.residual = residual

    def forward(self, vectors: Tensor) -> Tensor:
        """``[B, in]`` to ``[B, out]``"""
        changed: Tensor = self.activation(nan_if_infinite(self.linear(vectors)))
        return changed if self.residual is None else changed + self.residual(vectors)


class Normalize(nn.Module):
    """Divides every vector by its norm."""

    def forward(self, vectors: Tensor) -> Tensor:
        """``[B, D]`` to ``[B, D]`` of norm 1."""
        return normalize(vectors)


class TruncateDimensions(nn.Module):
    """Keeps the first ``width`` dimensions (Matryoshka truncation)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        if width < 1:
            raise InputError(f"width must be at least 1, got {width}")
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
        """``[B, D]``: the vector of each text, whose first ``prompt_tokens`` tokens are its prompt."""
        vectors = pool(*self._pooled_states(ids, prompt_tokens), self.pooling)
        for layer in self.layers:
            vectors = layer(vectors)
        return vectors

    def token_parts(self, ids: Sequence[int], *, prompt_tokens: int = 0) -> Tensor:
        """``[T, D]``: the part of each token in the vector of a text; the parts add up to the vector.

        The layers must be linear.
        """
        states, mask = self._pooled_states([ids], prompt_tokens)
        parts = pooled_parts(states, mask, self.pooling)[0]
        for layer in self.layers:
            parts = parts / norms(parts.sum(dim=0)) if isinstance(layer, Normalize) else layer(parts)
        return parts

    @property
    def is_linear(self) -> bool:
        """Whether the layers after the pooling, apart from normalization, are linear and without bias."""
        return all(_is_linear(layer) for layer in self.layers)

    def _pooled_states(self, ids: Sequence[Sequence[int]], prompt_tokens: int) -> TokenStates:
        """The states of the tokens, and a mask of those that are pooled."""
        states, mask = self.encoder(ids)
        if prompt_tokens and not self.pooling.include_prompt:
            mask = without_prompt(mask, prompt_tokens)
        return TokenStates(states, mask)

    def fingerprint_inputs(self) -> dict[str, Any]:
        """What determines a vector apart from the weights."""
        layers = [
            [type(part).__name__ for part in layer.modules()] + [getattr(layer, "width", 0)]
            for layer in self.layers
        ]
        pooling = asdict(self.pooling)
        if "mean_first" not in self.pooling.kinds:
            del pooling["first_tokens"]  # has no effect
        return {**self.encoder.fingerprint_inputs(), "pooling": pooling, "layers": layers}

    @property
    def width(self) -> int:
        """D, the dimension of a vector."""
        width = self.encoder.width * len(self.pooling.kinds)
        for layer in self.layers:
            if isinstance(layer, Dense):
                width = layer.linear.out_features
            elif isinstance(layer, TruncateDimensions):
                width = min(width, layer.width)
        return width


def _is_linear(layer: nn.Module) -> bool:
    if not isinstance(layer, Dense):
        return isinstance(layer, Normalize | TruncateDimensions)
    biased = any(part.bias is not None for part in layer.modules() if isinstance(part, nn.Linear))
    return isinstance(layer.activation, nn.Identity) and not biased
