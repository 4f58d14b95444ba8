"""The poly-encoder: several codes per context, one vector per candidate (Humeau et al., 2020)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from tercet.encoders.batches import batches_by_tokens
from tercet.encoders.encoder import Encoder
from tercet.inputs import check_candidates, check_contexts, check_seed
from tercet.records import Context, Explanation
from tercet.scorers.attention_entropy import normalized_entropies
from tercet.scorers.codes import CodeLayer, CodeTensors
from tercet.scorers.dual import DualEncoder, to_numpy
from tercet.scorers.explain import explain_poly, shares
from tercet.scorers.match import match
from tercet.scorers.persistence import Source
from tercet.scorers.poly_scorer import PolyScorer
from tercet.scorers.tower import Normalize, Tower
from tercet.settings.models import PolyConfig, PoolingConfig, Precision
from tercet.text.tokenizer import Tokenizer


class PolyParts(NamedTuple):
    """What a poly-encoder is assembled from."""

    tokenizer: Tokenizer
    context_encoder: Encoder
    candidate_encoder: Encoder
    code_layer: CodeLayer


class PolyEncoder(DualEncoder, PolyScorer):
    """The poly-encoder in torch."""

    def __init__(self, parts: PolyParts, *, precision: Precision = "fp32") -> None:
        config = parts.code_layer.config
        super().__init__(parts.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self.config = config
        self.context_encoder = parts.context_encoder
        self.code_layer = parts.code_layer
        reduction = PoolingConfig(kinds=(config.reduction,), first_tokens=config.first_tokens)
        normalize = [Normalize()] if config.similarity == "cosine" else []
        self.candidate_tower = Tower(parts.candidate_encoder, reduction, normalize)
        self._finish()

    @classmethod
    def from_backbone(
        cls,
        backbone: Source,
        *,
        config: PolyConfig | None = None,
        max_tokens: int | None = None,
        seed: int = 0,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """An untrained poly-encoder built on any Hugging Face encoder; both towers start with its weights."""
        return cls._new(
            backbone,
            config=config or PolyConfig(),
            max_tokens=max_tokens,
            seed=check_seed(seed),
            precision=precision,
            device=device,
        )

    @classmethod
    def _assemble(cls, parts: PolyParts, precision: Precision) -> Self:
        return cls(parts, precision=precision)

    def parts(self) -> PolyParts:
        """What the poly-encoder is assembled from."""
        return PolyParts(self.tokenizer, self.context_encoder, self.candidate_tower.encoder, self.code_layer)

    @property
    def width(self) -> int:
        """D, the dimension of a vector."""
        return self.candidate_tower.width

    @property
    def attention_scale(self) -> float:
        """Multiplies the logits of the candidates' attention over the codes."""
        return self.code_layer.candidate_scale.value

    @property
    def score_scale(self) -> float:
        """Multiplies the scores."""
        return self.code_layer.logit_scale.value

    def context_codes(self, ids: Sequence[Sequence[int]]) -> CodeTensors:
        """The codes of each context."""
        codes: CodeTensors = self.code_layer(self.context_encoder(ids))
        return codes

    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vector of each candidate."""
        vectors: Tensor = self.candidate_tower(ids)
        return vectors

    def match_tensors(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: each candidate attends over the codes of each context; one direction of a symmetric
        score."""
        mask = None if self.config.code_kind == "learnt" else codes.mask  # learnt codes are always complete
        scores = match(codes.vectors, candidates, mask=mask, scale=self.code_layer.candidate_scale())
        scale = self.code_layer.logit_scale()
        return scores * (scale.to(scores.device) if torch.is_tensor(scale) else scale)

    @torch.inference_mode()
    def _explain_exactly(self, context: Context, candidate: str) -> Explanation:
        """For a symmetric model, this explains the direction in which the context has codes."""
        self._check_ready()
        self._warn_of_script([context, candidate])
        passages = self._passages([context, candidate])
        left, right = self.tokenizer.encode(passages)
        tokens = self.context_encoder([left.ids])
        found = shares(
            to_numpy(tokens.states[0]),
            to_numpy(self.code_layer.attention(tokens)[0]),
            to_numpy(self.candidate_vectors([right.ids])[0]),
            scale=self.code_layer.candidate_scale.value,
            logit_scale=self.code_layer.logit_scale.value,
            unit_codes=self.config.similarity == "cosine",
        )
        truncated = left.truncated, right.truncated
        return explain_poly(passages, found, self.tokenizer.pieces(passages[0]), truncated)

    @torch.inference_mode()
    def attention_entropies(self, contexts: Sequence[Context], candidates: Sequence[str]) -> dict[str, float]:
        """Mean normalized entropies of the two attentions: 1 is uniform, 0 is a single token or code.

        ``token_entropy`` is that of learnt codes over the tokens of each context, ``code_entropy`` that of
        all candidates over the codes of each context. Near 1 the codes no longer differ, and the
        poly-encoder has collapsed to a bi-encoder. A few dozen texts are enough: every batch of contexts is
        compared with all candidates at once.
        """
        self._check_ready()
        ids = self.token_ids(check_contexts(contexts), "context")
        vectors = self._encode(check_candidates(candidates), "candidate").codes.vectors[:, 0]
        parts = [
            normalized_entropies(
                self.code_layer, self.context_encoder([ids[position] for position in batch]), vectors
            )
            for batch in batches_by_tokens([len(text) for text in ids], self.token_budget)
        ]
        found = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        return {name: float(each.mean()) for name, each in found.items() if len(each)}

    @property
    def backbone(self) -> Encoder:
        """The encoder of contexts."""
        return self.context_encoder

    def _description(self) -> dict[str, object]:
        layer = self.code_layer
        return {
            "codes": f"{self.config.codes} {self.config.code_kind}",
            "reduction": self.config.reduction,
            "towers": self.config.towers,
            "similarity": self.config.similarity,
            "symmetric": self.config.symmetric,
            "code scale": layer.code_scale.value,
            "candidate scale": layer.candidate_scale.value,
            "logit scale": layer.logit_scale.value,
            "learnt scales": self.config.learn_scales,
        }

    def _fingerprint_inputs(self) -> dict[str, Any]:
        towers = [self.context_encoder.fingerprint_inputs(), self.candidate_tower.fingerprint_inputs()]
        return {"config": asdict(self.config), "towers": towers}
