"""Texts to vectors: a compiled transformer, its pooling, and the layers after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from tercet.encoders.openvino.compiled import CompiledGraph
from tercet.encoders.openvino.graphs import GraphPart, Transformer, pooled_graph, state_graph
from tercet.encoders.openvino.inputs import POOLED_FROM
from tercet.records import Bools, Floats
from tercet.scorers.numpy_layers import DenseLayer, Layer, normalize, norms
from tercet.settings.models import PoolingConfig, Precision


@dataclass(frozen=True, kw_only=True)
class TowerWeights:
    """One side of a dual encoder: a transformer, its pooling, and the layers after it."""

    transformer: Transformer
    pooling: PoolingConfig
    layers: Sequence[Layer] = field(default=())
    width: int


class VectorTower:
    """One side of a dual encoder."""

    def __init__(self, weights: TowerWeights, precision: Precision) -> None:
        self.pooling, self.width = weights.pooling, weights.width
        self._layers, self._transformer, self._precision = weights.layers, weights.transformer, precision
        self._graph = self.part.compiled(weights.transformer)

    def __call__(self, ids: Sequence[Sequence[int]], *, prompt_tokens: int = 0) -> Floats:
        """``[B, D]``"""
        others = {} if self.pooling.include_prompt else {POOLED_FROM: [prompt_tokens]}
        vectors = self._graph.run(ids, **others)
        for layer in self._layers:
            vectors = layer(vectors)
        return vectors

    @property
    def part(self) -> GraphPart:
        """The transformer and its graph."""
        return GraphPart(
            self._transformer,
            partial(pooled_graph, pooling=self.pooling, precision=self._precision),
        )

    @cached_property
    def _states(self) -> CompiledGraph:
        return state_graph(self._transformer, precision=self._precision)

    @property
    def is_linear(self) -> bool:
        """Whether the layers, apart from normalization, are linear and without bias."""
        dense = [layer for layer in self._layers if isinstance(layer, DenseLayer)]
        return all(
            layer.activation == "Identity" and layer.bias is None and layer.residual is None
            for layer in dense
        )

    def token_parts(self, ids: Sequence[int], *, prompt_tokens: int = 0) -> Floats:
        """``[T, D]``: the part of each token in the vector of a text; the parts add up to the vector.

        The layers must be linear.
        """
        states = self._states.run([ids])[0, : len(ids)]
        mask = np.ones(len(ids), dtype=np.bool_)
        if prompt_tokens and not self.pooling.include_prompt and prompt_tokens < len(ids):
            mask[:prompt_tokens] = False
        parts = np.concatenate(
            [pooled_parts(states, mask, kind, self.pooling) for kind in self.pooling.kinds], -1
        )
        for layer in self._layers:
            parts = parts / norms(parts.sum(axis=0)) if layer is normalize else layer(parts)
        return parts


def pooled_parts(states: Floats, mask: Bools, kind: str, pooling: PoolingConfig) -> Floats:
    """``[T, D]``: the part of each token in the pooled vector of one text.

    Args:
        states: ``[T, D]``
        mask: ``[T]``, true for the tokens that are pooled.
    """
    weights = mask.astype(np.float32)
    if kind == "max":
        best = np.where(mask[:, None], states, -np.inf).argmax(axis=0)
        return np.where(np.arange(len(states))[:, None] == best, states, np.float32(0))
    if kind in ("first", "last"):
        chosen = np.flatnonzero(mask)[0 if kind == "first" else -1]
        weights = (np.arange(len(states)) == chosen).astype(np.float32)
    elif kind == "mean_sqrt":
        weights /= weights.sum() ** np.float32(0.5)
    else:
        if kind == "weighted_mean":
            weights *= np.arange(1, len(states) + 1, dtype=np.float32)
        elif kind == "mean_first":
            weights *= np.cumsum(weights) <= pooling.first_tokens
        weights /= weights.sum()
    parts: Floats = states * weights[:, None]
    return parts
