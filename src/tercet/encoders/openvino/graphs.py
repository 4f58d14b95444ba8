"""Encoders with a reduction as compiled graphs: tokens in, one small array out."""

from typing import Any, NamedTuple

from tercet.encoders.openvino.architectures import Settings, Tokens, encoder_states, first_position
from tercet.encoders.openvino.blocks import Node, Weights
from tercet.encoders.openvino.compiled import CompiledGraph
from tercet.encoders.openvino.inputs import (
    IDS,
    POOLED_FROM,
    SEGMENTS,
    STARTS,
    Inputs,
    make_inputs,
    padding_bias,
    separate_bias,
    separate_places,
)
from tercet.encoders.openvino.reductions import code_vectors, pooled, side_means
from tercet.records import Floats
from tercet.settings.models import PoolingConfig, Precision


class Transformer(NamedTuple):
    """A transformer as its folder describes it: ``config.json`` and the weights."""

    settings: Settings
    weights: Weights

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


def pooled_graph(transformer: Transformer, pooling: PoolingConfig, *, precision: Precision) -> CompiledGraph:
    """Texts to pooled vectors, ``[B, kinds * D]``."""
    inputs = make_inputs(*([] if pooling.include_prompt else [POOLED_FROM]))
    states = encoder_states(*transformer, _alone(inputs))
    return CompiledGraph(pooled(states, inputs, pooling), inputs, precision=precision)


def code_graph(
    transformer: Transformer, codes: Floats, *, scale: float, precision: Precision
) -> CompiledGraph:
    """Contexts to learnt codes, ``[B, M, D]``, which are not normalized."""
    inputs = make_inputs()
    states = encoder_states(*transformer, _alone(inputs))
    return CompiledGraph(code_vectors(states, inputs, codes, scale), inputs, precision=precision)


def state_graph(transformer: Transformer, *, precision: Precision) -> CompiledGraph:
    """Texts to the states of their tokens, ``[B, T, D]``; those of padding mean nothing."""
    inputs = make_inputs()
    return CompiledGraph(encoder_states(*transformer, _alone(inputs)), inputs, precision=precision)


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
    needs_starts = cross_text_weight is not None or pooling is None
    inputs = make_inputs(*[SEGMENTS] * segments, *[STARTS] * needs_starts)
    tokens = Tokens(
        ids=inputs[IDS],
        places=inputs.places if cross_text_weight is None else separate_places(inputs),
        segments=inputs[SEGMENTS] if segments else None,
        bias=padding_bias(inputs) if cross_text_weight is None else separate_bias(inputs, cross_text_weight),
    )
    states = encoder_states(*transformer, tokens)
    output: Node = side_means(states, inputs) if pooling is None else pooled(states, inputs, pooling)
    return CompiledGraph(output, inputs, precision=precision)


def _alone(inputs: Inputs) -> Tokens:
    """The tokens of single texts."""
    segments: Any = None
    return Tokens(inputs[IDS], inputs.places, segments, padding_bias(inputs))
