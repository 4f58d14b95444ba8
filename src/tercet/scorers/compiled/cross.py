"""The cross-encoder that OpenVINO runs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tercet.encoders.openvino.graphs import GraphPart, Transformer, pair_graph
from tercet.encoders.openvino.inputs import SEGMENTS, SPLITS
from tercet.records import Floats
from tercet.scorers.compiled.base import CompiledScorer, Origin
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.numpy_layers import ACTIVATIONS, nan_if_infinite
from tercet.settings.models import CrossConfig, PoolingConfig, Precision
from tercet.text.pairs import PairIds
from tercet.text.tokenizer import Tokenizer


class CrossWeights(NamedTuple):
    """What a cross-encoder is compiled from.

    ``head`` turns what the graph returns into outputs ``[B, k]``: the pooled state of a pair, or without a
    pooling the means of both texts, ``[B, 2, D]``.
    """

    tokenizer: Tokenizer
    transformer: Transformer
    pooling: PoolingConfig | None
    head: Callable[[Floats], Floats]
    config: CrossConfig


class CompiledCross(CompiledScorer, CrossScorer):
    """A cross-encoder that OpenVINO runs."""

    def __init__(self, weights: CrossWeights, origin: Origin, *, precision: Precision = "fp32") -> None:
        config = weights.config
        self._set_text(weights.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self._set_pairs(weights.tokenizer, config, segments=weights.transformer.segments)
        self.origin, self._transformer, self._head = origin, weights.transformer, weights.head
        self._needs_splits = config.cross_text_weight is not None or weights.pooling is None
        self._pooling, self._weight = weights.pooling, config.cross_text_weight
        self._graph = self.graph_parts()["pair"].compiled(weights.transformer)

    def graph_parts(self) -> dict[str, GraphPart]:
        """The encoder of pairs."""
        build = partial(
            pair_graph,
            segments=self._uses_segments,
            cross_text_weight=self._weight,
            pooling=self._pooling,
            precision=self.precision,
        )
        return {"pair": GraphPart(self._transformer, build)}

    def _run_pairs(self, pairs: Sequence[PairIds]) -> Floats:
        others: dict[str, list[Any]] = {}
        if self._uses_segments:
            others[SEGMENTS] = [pair.segments for pair in pairs]
        if self._needs_splits:
            others[SPLITS] = [pair.candidate_start for pair in pairs]
        outputs = self._head(self._graph.run([pair.ids for pair in pairs], **others))
        return ACTIVATIONS[self.config.activation](nan_if_infinite(outputs))
