"""The bi-encoder: one vector per context, one per candidate, and their similarity."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from tercet.encoders.encoder import Encoder
from tercet.errors import InputError
from tercet.inputs import check_pairs
from tercet.records import Context, Explanation, Floats
from tercet.scorers.bi_scorer import BiScorer
from tercet.scorers.codes import CodeTensors
from tercet.scorers.dual import DualEncoder, to_numpy
from tercet.scorers.explain import ExplainedSide, explain_bi
from tercet.scorers.finite import finite_scores, finite_vectors
from tercet.scorers.match import match
from tercet.scorers.overflow import normalize, norms
from tercet.scorers.pair_classifier import PairClassifier
from tercet.scorers.persistence import Source
from tercet.scorers.text_scorer import distinct
from tercet.scorers.tower import Tower
from tercet.settings.models import SIDES, BiConfig, ModelSpec, PoolingConfig, Precision, Side
from tercet.text.tokenizer import Passage, Tokenizer


class BiParts(NamedTuple):
    """What a bi-encoder is assembled from."""

    tokenizer: Tokenizer
    context_tower: Tower
    candidate_tower: Tower
    config: BiConfig
    classifier: PairClassifier | None = None


class BiEncoder(DualEncoder, BiScorer):
    """The bi-encoder in torch."""

    def __init__(self, parts: BiParts, *, precision: Precision = "fp32") -> None:
        super().__init__(parts.tokenizer, turn_separator=parts.config.turn_separator, precision=precision)
        self.config = parts.config
        self.context_tower = parts.context_tower
        self.candidate_tower = parts.candidate_tower
        self.classifier = parts.classifier
        """Learnt by the objective ``softmax``; ``classify`` needs it."""
        self._prompt_tokens: dict[Side, int] = {
            "context": parts.tokenizer.prompt_length(parts.config.context_prompt),
            "candidate": parts.tokenizer.prompt_length(parts.config.candidate_prompt),
        }
        self._finish()

    @classmethod
    def from_backbone(
        cls,
        backbone: Source,
        *,
        config: BiConfig | None = None,
        pooling: PoolingConfig | None = None,
        max_tokens: int | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """An untrained bi-encoder built on any Hugging Face encoder; two towers start with equal weights."""
        return cls._new(
            backbone,
            config=config or BiConfig(),
            pooling=pooling or PoolingConfig(),
            max_tokens=max_tokens,
            precision=precision,
            device=device,
        )

    @classmethod
    def from_spec(cls, spec: ModelSpec, *, device: str | None = None) -> Self:
        """An untrained bi-encoder as specified."""
        return cls.from_backbone(
            spec.source,
            config=spec.config(),
            pooling=spec.pooling_config(),
            max_tokens=spec.max_tokens,
            device=device,
        )

    @classmethod
    def _assemble(cls, parts: BiParts, precision: Precision) -> Self:
        return cls(parts, precision=precision)

    def parts(self) -> BiParts:
        """What the bi-encoder is assembled from."""
        return BiParts(self.tokenizer, self.context_tower, self.candidate_tower, self.config, self.classifier)

    @property
    def width(self) -> int:
        """D, the dimension of a vector."""
        return self.candidate_tower.width

    @property
    def is_siamese(self) -> bool:
        """Whether one tower encodes both sides in the same way."""
        same_prompt = self.config.context_prompt == self.config.candidate_prompt
        return self.context_tower is self.candidate_tower and same_prompt

    def context_codes(self, ids: Sequence[Sequence[int]]) -> CodeTensors:
        """The one code of each context, ``[B, 1, D]``."""
        vectors: Tensor = self.context_tower(ids, prompt_tokens=self._prompt_tokens["context"])
        return CodeTensors(
            vectors.unsqueeze(1), torch.ones(len(vectors), 1, dtype=torch.bool, device=vectors.device)
        )

    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vector of each candidate."""
        vectors: Tensor = self.candidate_tower(ids, prompt_tokens=self._prompt_tokens["candidate"])
        return vectors

    def match_tensors(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: the similarities of contexts and candidates."""
        if not self.uses_cosine:
            return match(codes.vectors, candidates)
        # a normalized copy of the candidates would be large
        cosines: Tensor = match(normalize(codes.vectors), candidates) / norms(candidates)
        return cosines

    def classify(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B, k]``: the probability of each class for each context and the candidate at its position."""
        left, right = check_pairs(contexts, candidates)
        if self.classifier is None:
            raise InputError(
                "this bi-encoder has no classes: train it on labelled pairs with the objective softmax"
            )
        vectors = self._pair_vectors(left, "context"), self._pair_vectors(right, "candidate")
        return finite_scores(self.classifier.probabilities(*vectors))

    def _pair_vectors(self, texts: Sequence[Context], side: Side) -> Floats:
        """``[N, D]``: the vectors of texts; repeated ones are encoded once."""
        different, which = distinct(texts)
        vectors = finite_vectors(to_numpy(self._encode(different, side).codes.vectors[:, 0]))
        return vectors[which]

    @torch.inference_mode()
    def _explain_exactly(self, context: Context, candidate: str) -> Explanation | None:
        """None if a layer after the pooling is not linear: a token then has no part of the vector."""
        self._check_ready()
        self._warn_of_script([context, candidate])
        if not (self.context_tower.is_linear and self.candidate_tower.is_linear):
            return None
        passages = self._passages([context, candidate])
        left, right = (self._side(passage, side) for passage, side in zip(passages, SIDES, strict=True))
        poolings = self.context_tower.pooling, self.candidate_tower.pooling
        return explain_bi(passages, left, right, cosine=self.uses_cosine, poolings=poolings)

    def _side(self, passage: Passage, side: Side) -> ExplainedSide:
        """The tokens of a text and their parts of its vector."""
        prompt = self.prompt(side)
        (tokens,) = self.tokenizer.encode([passage], prompt=prompt)
        tower = self.context_tower if side == "context" else self.candidate_tower
        parts = tower.token_parts(tokens.ids, prompt_tokens=self._prompt_tokens[side])
        return ExplainedSide(to_numpy(parts), self.tokenizer.pieces(passage, prompt=prompt), tokens.truncated)

    @property
    def backbone(self) -> Encoder:
        """The encoder of contexts."""
        return self.context_tower.encoder

    def _description(self) -> dict[str, object]:
        return {
            "vectors": self.width,
            "towers": self.config.towers,
            "pooling": _shown(self.context_tower.pooling),
            "similarity": self.config.similarity,
            "context prompt": self.config.context_prompt,
            "candidate prompt": self.config.candidate_prompt,
            **({} if self.classifier is None else {"labels": _class_names(self.classifier)}),
        }

    def _fingerprint_inputs(self) -> dict[str, Any]:
        towers = [tower.fingerprint_inputs() for tower in (self.context_tower, self.candidate_tower)]
        return {"config": asdict(self.config), "towers": towers[: self.config.towers]}


def _class_names(classifier: PairClassifier) -> str:
    """The classes as ``tercet info`` shows them."""
    return ", ".join(classifier.labels) or f"{classifier.num_labels}"


def _shown(pooling: PoolingConfig) -> str:
    """The pooling as ``tercet info`` shows it."""
    tokens = f" of {pooling.first_tokens} tokens"
    return " + ".join(kind + tokens * (kind == "mean_first") for kind in pooling.kinds)
