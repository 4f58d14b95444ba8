"""Scorers whose transformers OpenVINO runs; torch is not imported.

They compute what the torch scorers compute. Training, and writing model folders, need torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tercet.encoders.openvino.graphs import (
    Transformer,
    code_graph,
    pair_graph,
    pooled_graph,
    state_graph,
)
from tercet.encoders.openvino.inputs import POOLED_FROM, SEGMENTS, STARTS
from tercet.records import Codes, Floats
from tercet.scorers.bi_scorer import BiScorer
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.finite import finite_scores
from tercet.scorers.numpy_layers import (
    ACTIVATIONS,
    Layer,
    nan_if_infinite,
    normalize,
    norms,
    poly_match,
    products,
)
from tercet.scorers.poly_scorer import PolyScorer
from tercet.scorers.text_scorer import TextScorer
from tercet.settings.models import BiConfig, CrossConfig, PolyConfig, PoolingConfig, Precision, Side
from tercet.text.pairs import PairIds
from tercet.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a compiled scorer comes from.

    ``fingerprint`` and ``with_torch`` are called when they are needed: both can take seconds.
    """

    fingerprint: Callable[[], str]
    with_torch: Callable[[], Any]
    """Loads the same scorer in torch."""


@dataclass(frozen=True, kw_only=True)
class TowerWeights:
    """One side of a dual encoder: a transformer, its pooling, and the layers after it."""

    transformer: Transformer
    pooling: PoolingConfig
    layers: Sequence[Layer] = field(default=())
    width: int


class BiWeights(NamedTuple):
    """What a bi-encoder is compiled from."""

    tokenizer: Tokenizer
    context: TowerWeights
    candidate: TowerWeights
    config: BiConfig


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


class CompiledScorer(TextScorer):
    """What the three compiled scorers share."""

    runtime = "openvino"
    origin: Origin
    _transformer: Transformer

    @property
    def fingerprint(self) -> str:
        """Identifies these weights, settings and tokenizer, as in torch."""
        return self.origin.fingerprint()

    @property
    def token_budget(self) -> int:
        """Tokens per forward pass."""
        return self.encoding.cpu_tokens

    @property
    def is_on_cpu(self) -> bool:
        """True: other devices need torch."""
        return True

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a new folder that ``tercet.load`` reads, and return its path. Needs torch."""
        scorer = self.origin.with_torch()
        scorer.calibration = self.calibration
        saved: Path = scorer.save(path)
        return saved

    def describe(self) -> dict[str, object]:
        """The properties of the scorer, for display."""
        settings = self._transformer.settings
        threshold = None if self.calibration is None else self.calibration.threshold
        return {
            "kind": self.kind,
            "fingerprint": self.fingerprint,
            "architecture": settings["model_type"],
            "layers": settings.get("num_hidden_layers") or settings.get("n_layers"),
            "width": self._transformer.width,
            "max tokens": self.tokenizer.max_tokens,
            "calibrated": "no" if threshold is None else f"match from a score of {threshold:.4g}",
        }

    def __repr__(self) -> str:
        architecture = self._transformer.settings["model_type"]
        return f"<{type(self).__name__}: {architecture}, {self._transformer.width} wide, {self.precision}>"


class VectorTower:
    """Texts to vectors."""

    def __init__(self, weights: TowerWeights, precision: Precision) -> None:
        self.pooling, self.width = weights.pooling, weights.width
        self._graph = pooled_graph(weights.transformer, weights.pooling, precision=precision)
        self._layers = weights.layers

    def __call__(self, ids: Sequence[Sequence[int]], *, prompt_tokens: int = 0) -> Floats:
        """``[B, D]``"""
        others = {} if self.pooling.include_prompt else {POOLED_FROM: [prompt_tokens]}
        vectors = self._graph.run(ids, **others)
        for layer in self._layers:
            vectors = layer(vectors)
        return vectors


class CompiledDual(CompiledScorer, DualScorer):
    """A compiled bi- or poly-encoder."""

    def match_codes(self, codes: Codes, vectors: Any) -> Floats:
        """As ``match``, but of a symmetric score this is one direction."""
        return finite_scores(self._match(codes, np.asarray(vectors, dtype=np.float32)))

    def _joined(self, parts: Sequence[Codes]) -> Codes:
        if len(parts) == 1:
            return parts[0]
        most = max(part.mask.shape[1] for part in parts)
        padded = [_padded(part, most) for part in parts]
        return Codes(
            np.concatenate([part.vectors for part in padded]), np.concatenate([part.mask for part in padded])
        )

    def _numpy(self, codes: Codes) -> Codes:
        return codes


class CompiledBi(CompiledDual, BiScorer):
    """A bi-encoder that OpenVINO runs."""

    def __init__(self, weights: BiWeights, origin: Origin, *, precision: Precision = "fp32") -> None:
        self._set_text(weights.tokenizer, turn_separator=weights.config.turn_separator, precision=precision)
        self.config, self.origin = weights.config, origin
        self._transformer = weights.context.transformer
        context = VectorTower(weights.context, precision)
        shared = weights.candidate is weights.context
        candidate = context if shared else VectorTower(weights.candidate, precision)
        self._towers: dict[Side, VectorTower] = {"context": context, "candidate": candidate}
        self._prompt_tokens: dict[Side, int] = {
            "context": weights.tokenizer.prompt_length(weights.config.context_prompt),
            "candidate": weights.tokenizer.prompt_length(weights.config.candidate_prompt),
        }

    @property
    def width(self) -> int:
        """D, the dimension of a vector."""
        return self._towers["candidate"].width

    @property
    def is_siamese(self) -> bool:
        """Whether one tower encodes both sides in the same way."""
        towers, prompts = self._towers, self._prompt_tokens
        return towers["context"] is towers["candidate"] and prompts["context"] == prompts["candidate"]

    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> Codes:
        vectors = self._towers[side](ids, prompt_tokens=self._prompt_tokens[side])
        return _one_code(vectors)

    def _match(self, codes: Codes, vectors: Floats) -> Floats:
        if not self.uses_cosine:
            return products(codes, vectors)
        unit = Codes(normalize(codes.vectors), codes.mask)
        cosines: Floats = products(unit, vectors) / norms(vectors)
        return cosines


class CompiledPoly(CompiledDual, PolyScorer):
    """A poly-encoder that OpenVINO runs."""

    def __init__(self, weights: PolyWeights, origin: Origin, *, precision: Precision = "fp32") -> None:
        config = weights.config
        self._set_text(weights.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self.config, self.origin, self._scales = config, origin, weights.scales
        self._transformer = weights.context
        if weights.codes is None:
            self._contexts = state_graph(weights.context, precision=precision)
        else:
            self._contexts = code_graph(
                weights.context, weights.codes, scale=weights.scales.code, precision=precision
            )
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

    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> Codes:
        if side == "candidate":
            return _one_code(self._candidates(ids))
        found = self._contexts.run(ids)
        if self.config.code_kind == "learnt":
            codes = Codes(found, np.ones(found.shape[:2], dtype=np.bool_))
        else:
            codes = chosen_states(found, [len(text) for text in ids], self.config)
        unit = normalize(codes.vectors) if self.config.similarity == "cosine" else codes.vectors
        return Codes(unit, codes.mask)

    def _match(self, codes: Codes, vectors: Floats) -> Floats:
        scores = poly_match(codes, vectors, scale=self._scales.candidate)
        return scores * np.float32(self._scales.logit)


class CompiledCross(CompiledScorer, CrossScorer):
    """A cross-encoder that OpenVINO runs."""

    def __init__(self, weights: CrossWeights, origin: Origin, *, precision: Precision = "fp32") -> None:
        config = weights.config
        self._set_text(weights.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self._set_pairs(weights.tokenizer, config, segments=weights.transformer.segments)
        self.origin, self._transformer, self._head = origin, weights.transformer, weights.head
        self._needs_starts = config.cross_text_weight is not None or weights.pooling is None
        self._graph = pair_graph(
            weights.transformer,
            segments=self._uses_segments,
            cross_text_weight=config.cross_text_weight,
            pooling=weights.pooling,
            precision=precision,
        )

    def _run_pairs(self, pairs: Sequence[PairIds]) -> Floats:
        others: dict[str, list[Any]] = {}
        if self._uses_segments:
            others[SEGMENTS] = [pair.segments for pair in pairs]
        if self._needs_starts:
            others[STARTS] = [pair.candidate_start for pair in pairs]
        outputs = self._head(self._graph.run([pair.ids for pair in pairs], **others))
        return ACTIVATIONS[self.config.activation](nan_if_infinite(outputs))


def chosen_states(states: Floats, lengths: Sequence[int], config: PolyConfig) -> Codes:
    """The states of the first or last tokens of each text as its codes.

    Args:
        states: ``[B, T, D]``
        lengths: the tokens of each text.
    """
    counts = np.array(lengths)[:, None]  # [B, 1]
    most = config.codes + 1 if config.code_kind == "last_and_first" else config.codes
    taken = np.minimum(counts, most)
    number = np.arange(min(most, int(counts.max())))[None]  # [1, M]
    present = number < taken
    tokens = number + (0 if config.code_kind == "first" else counts - taken)
    if config.code_kind == "last_and_first":
        tokens = np.where(number == 0, 0, tokens)
    rows = np.arange(len(states))[:, None]
    return Codes(states[rows, np.where(present, tokens, 0)] * present[..., None], present)


def _one_code(vectors: Floats) -> Codes:
    return Codes(vectors[:, None], np.ones((len(vectors), 1), dtype=np.bool_))


def _padded(codes: Codes, count: int) -> Codes:
    missing = count - codes.mask.shape[1]
    if not missing:
        return codes
    return Codes(
        np.pad(codes.vectors, ((0, 0), (0, missing), (0, 0))), np.pad(codes.mask, ((0, 0), (0, missing)))
    )
