"""The poly-encoder that OpenVINO runs."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from tercet.encoders.openvino.compiled import CompiledGraph
from tercet.encoders.openvino.graphs import GraphPart, Transformer, code_graph, state_graph
from tercet.records import Bools, Codes, Context, Explanation, Floats, Ints
from tercet.scorers.compiled.base import CompiledDual, Origin, one_code
from tercet.scorers.compiled.tower import TowerWeights, VectorTower
from tercet.scorers.explain import explain_poly, shares
from tercet.scorers.numpy_layers import normalize, poly_match, softmax
from tercet.scorers.poly_scorer import PolyScorer
from tercet.settings.models import PolyConfig, PoolingConfig, Precision, Side
from tercet.text.tokenizer import Tokenizer


class Scales(NamedTuple):
    """The three scales of a poly-encoder."""

    code: float
    candidate: float
    logit: float


class PolyWeights(NamedTuple):
    """What a poly-encoder is compiled from; ``codes`` ``[M, D]`` are None unless they are learnt."""

    tokenizer: Tokenizer
    context: Transformer
    candidate: Transformer
    codes: "Floats | None"
    scales: Scales
    config: PolyConfig


class CompiledPoly(CompiledDual, PolyScorer):
    """A poly-encoder that OpenVINO runs."""

    def __init__(self, weights: PolyWeights, origin: Origin, *, precision: Precision = "fp32") -> None:
        config = weights.config
        self._set_text(weights.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self.config, self.origin, self._scales = config, origin, weights.scales
        self._codes = weights.codes
        self._transformer = weights.context
        self._contexts = self._context_part.compiled(weights.context)
        pooling = PoolingConfig(kinds=(config.reduction,), first_tokens=config.first_tokens)
        layers = [normalize] if config.similarity == "cosine" else []
        tower = TowerWeights(
            transformer=weights.candidate, pooling=pooling, layers=layers, width=weights.candidate.width
        )
        self._candidates = VectorTower(tower, precision)

    @property
    def width(self) -> int:
        """D, the dimension of a vector."""
        return self._candidates.width

    @property
    def attention_scale(self) -> float:
        """Multiplies the logits of the candidates' attention over the codes."""
        return self._scales.candidate

    @property
    def score_scale(self) -> float:
        """Multiplies the scores."""
        return self._scales.logit

    def graph_parts(self) -> dict[str, GraphPart]:
        """The encoders of contexts and of candidates, whose graphs differ even if they share weights."""
        return {"context": self._context_part, "candidate": self._candidates.part}

    @property
    def _context_part(self) -> GraphPart:
        if self._codes is None:
            return GraphPart(self._transformer, partial(state_graph, precision=self.precision))
        codes, scale = self._codes, self._scales.code
        return GraphPart(
            self._transformer, partial(code_graph, codes=codes, scale=scale, precision=self.precision)
        )

    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> Codes:
        if side == "candidate":
            return one_code(self._candidates(ids))
        run = self._contexts.run if self._codes is not None else self._contexts.run_together
        found = run(ids)
        if self.config.code_kind == "learnt":
            codes = Codes(found, np.ones(found.shape[:2], dtype=np.bool_))
        else:
            codes = chosen_states(found, [len(text) for text in ids], self.config)
        unit = normalize(codes.vectors) if self.config.similarity == "cosine" else codes.vectors
        return Codes(unit, codes.mask)

    def _match(self, codes: Codes, vectors: Floats) -> Floats:
        scores = poly_match(codes, vectors, scale=self._scales.candidate)
        return scores * np.float32(self._scales.logit)

    def _description(self) -> dict[str, object]:
        return {
            "codes": f"{self.config.codes} {self.config.code_kind}",
            "reduction": self.config.reduction,
            "towers": self.config.towers,
            "similarity": self.config.similarity,
            "symmetric": self.config.symmetric,
            "code scale": self._scales.code,
            "candidate scale": self._scales.candidate,
            "logit scale": self._scales.logit,
            "learnt scales": self.config.learn_scales,
        }

    @cached_property
    def _states(self) -> CompiledGraph:
        return state_graph(self._transformer, precision=self.precision)

    def _explain_exactly(self, context: Context, candidate: str) -> Explanation:
        """For a symmetric model, this explains the direction in which the context has codes."""
        self._warn_of_script([context, candidate])
        passages = self._passages([context, candidate])
        left, right = self.tokenizer.encode(passages)
        states = self._states.run([left.ids])[0, : len(left.ids)]
        found = shares(
            states,
            self._attention(states),
            self._candidates([right.ids])[0],
            scale=self._scales.candidate,
            logit_scale=self._scales.logit,
            unit_codes=self.config.similarity == "cosine",
        )
        truncated = left.truncated, right.truncated
        return explain_poly(passages, found, self.tokenizer.pieces(passages[0]), truncated)

    def _attention(self, states: Floats) -> Floats:
        """``[M, T]``: the weight of each token of one context in each code."""
        if self._codes is not None:
            return softmax((self._scales.code * self._codes @ states.T).astype(np.float32))
        tokens, present = chosen_tokens([len(states)], self.config)
        chosen = (np.arange(len(states)) == tokens[0][:, None]) & present[0][:, None]
        attention: Floats = chosen.astype(np.float32)
        return attention


def chosen_states(states: Floats, lengths: Sequence[int], config: PolyConfig) -> Codes:
    """The states ``[B, T, D]`` of the first or last tokens of each text as its codes."""
    tokens, present = chosen_tokens(lengths, config)
    rows = np.arange(len(states))[:, None]
    return Codes(states[rows, tokens] * present[..., None], present)


def chosen_tokens(lengths: Sequence[int], config: PolyConfig) -> tuple[Ints, Bools]:
    """``[B, M]`` twice: the tokens that serve as codes, and whether a short context has that many."""
    counts = np.array(lengths)[:, None]  # [B, 1]
    most = config.codes + 1 if config.code_kind == "last_and_first" else config.codes
    taken = np.minimum(counts, most)
    number = np.arange(min(most, int(counts.max())))[None]  # [1, M]
    present = number < taken
    tokens = number + (0 if config.code_kind == "first" else counts - taken)
    if config.code_kind == "last_and_first":
        tokens = np.where(number == 0, 0, tokens)
    return np.where(present, tokens, 0), present
