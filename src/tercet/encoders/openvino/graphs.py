"""Encoders with a reduction as compiled graphs: tokens in, one small array out."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tercet.encoders.openvino.architectures import Settings, Tokens, encoder_states, first_position
from tercet.encoders.openvino.blocks import Node, Weights
from tercet.encoders.openvino.compiled import CompiledGraph
from tercet.encoders.openvino.inputs import (
    IDS,
    PLACES,
    POOLED_FROM,
    SEGMENTS,
    SPLITS,
    Inputs,
    make_inputs,
    separate_bias,
    separate_places,
    text_bias,
)
from tercet.encoders.openvino.processor import highest_weight
from tercet.encoders.openvino.quantized import InputRange, QuantizedWeights
from tercet.encoders.openvino.ranges import Recorder
from tercet.encoders.openvino.reductions import code_vectors, pooled, side_means
from tercet.records import Floats
from tercet.settings.models import PoolingConfig, Precision


class Transformer(NamedTuple):
    """A transformer as its folder describes it: ``config.json`` and the weights.

    Linear layers whose input has a range are in int8. A recorder sees the inputs of all linear layers.
    """

    settings: Settings
    weights: Weights
    ranges: Mapping[str, InputRange] | None = None
    recorder: Recorder | None = None

    @property
    def width(self) -> int:
        """D, the hidden size."""
        return int(self.settings.get("hidden_size") or self.settings["dim"])

    @property
    def vocabulary(self) -> int:
        """The vocabulary size."""
        return int(self.settings["vocab_size"])

    @property
    def max_tokens(self) -> int | None:
        """The maximum sequence length, or None if there is no limit."""
        positions = self.settings.get("max_position_embeddings")
        return None if not positions or positions < 0 else int(positions) - first_position(self.settings)

    @property
    def segments(self) -> int:
        """The number of segment ids."""
        return len(self.weights.get("embeddings.token_type_embeddings.weight", ()))


class GraphPart(NamedTuple):
    """A transformer of a scorer, and what compiles the graph that the scorer needs of it."""

    transformer: Transformer
    compiled: Callable[[Transformer], CompiledGraph]


def pooled_graph(transformer: Transformer, pooling: PoolingConfig, *, precision: Precision) -> CompiledGraph:
    """Texts to pooled vectors, ``[B, kinds * D]``."""
    inputs = make_inputs(*([] if pooling.include_prompt else [POOLED_FROM]))
    states = _states(transformer, inputs, _alone(inputs))
    return CompiledGraph(
        pooled(states, inputs, pooling), inputs, precision=precision, recorder=transformer.recorder
    )


def code_graph(
    transformer: Transformer, codes: Floats, *, scale: float, precision: Precision
) -> CompiledGraph:
    """Contexts to learnt codes, ``[B, M, D]``, which are not normalized."""
    inputs = make_inputs()
    states = _states(transformer, inputs, _alone(inputs))
    return CompiledGraph(
        code_vectors(states, inputs, codes, scale), inputs, precision=precision, recorder=transformer.recorder
    )


def state_graph(transformer: Transformer, *, precision: Precision) -> CompiledGraph:
    """Texts to the states of their tokens, ``[B, T, D]``; those of padding mean nothing."""
    inputs = make_inputs()
    states = _states(transformer, inputs, _alone(inputs))
    return CompiledGraph(states, inputs, precision=precision, recorder=transformer.recorder)


def pair_graph(
    transformer: Transformer,
    *,
    segments: bool,
    cross_text_weight: float | None,
    pooling: PoolingConfig | None,
    precision: Precision,
) -> CompiledGraph:
    """Pairs to what a head reads.

    Args:
        segments: whether the tokens have segment ids.
        cross_text_weight: reads the texts separately if it is given.
        pooling: the pooling of a whole pair. None: the means of context and candidate, ``[B, 2, D]``.
    """
    needs_splits = cross_text_weight is not None or pooling is None
    inputs = make_inputs(*[SEGMENTS] * segments, *[SPLITS] * needs_splits)
    tokens = Tokens(
        ids=inputs[IDS],
        places=inputs[PLACES] if cross_text_weight is None else separate_places(inputs),
        segments=inputs[SEGMENTS] if segments else None,
        bias=text_bias(inputs) if cross_text_weight is None else separate_bias(inputs, cross_text_weight),
    )
    states = _states(transformer, inputs, tokens)
    output: Node = side_means(states, inputs) if pooling is None else pooled(states, inputs, pooling)
    return CompiledGraph(output, inputs, precision=precision, recorder=transformer.recorder)


def _states(transformer: Transformer, inputs: Inputs, tokens: Tokens) -> Node:
    """``[B, T, D]``: the states of each text."""
    weights = transformer.weights
    if transformer.recorder is not None:
        weights = transformer.recorder
    elif transformer.ranges is not None:
        weights = QuantizedWeights(weights, transformer.ranges, highest_weight())
    return inputs.by_text(encoder_states(transformer.settings, weights, tokens))


def _alone(inputs: Inputs) -> Tokens:
    """The tokens of single texts."""
    segments: Any = None
    return Tokens(inputs[IDS], inputs[PLACES], segments, text_bias(inputs))
