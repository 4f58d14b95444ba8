"""The poly-encoder: several codes for the context, one vector for the candidate (Humeau et al., 2020)."""

from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from tercet.config import PolyConfig, PoolingConfig, Precision
from tercet.errors import InputError
from tercet.inputs import check_context, check_contexts, check_seed, check_text
from tercet.models.code_layer import CodeTensors
from tercet.models.dual import DualEncoder
from tercet.models.encoder import Encoder
from tercet.models.explain import by_characters, code_shares, shares, token_shares
from tercet.models.match import match
from tercet.models.poly_folder import PolyParts, read_backbone, read_poly, write_poly
from tercet.models.sources import find_folder
from tercet.models.spread import attention_evenness
from tercet.models.tower import Normalise, Tower
from tercet.records import Context, Explanation, Floats, Scores
from tercet.runtime.batches import batches_by_tokens
from tercet.runtime.precision import pick_device


class PolyEncoder(DualEncoder):
    """Each candidate attends over the context's codes; candidates can still be encoded once and kept."""

    kind = "poly"

    def __init__(self, parts: PolyParts, *, precision: Precision = "fp32") -> None:
        config = parts.code_layer.config
        super().__init__(parts.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self.config = config
        self.context_encoder = parts.context_encoder
        self.code_layer = parts.code_layer
        reduction = PoolingConfig(kinds=(config.reduction,), first_tokens=config.first_tokens)
        lengths = [Normalise()] if config.similarity == "cosine" else []
        self.candidate_tower = Tower(parts.candidate_encoder, reduction, lengths)
        self._finish()

    @classmethod
    def from_backbone(
        cls,
        backbone: str | PathLike[str],
        *,
        config: PolyConfig | None = None,
        max_tokens: int | None = None,
        seed: int = 0,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """An untrained poly-encoder over any Hugging Face encoder; both towers start from its weights."""
        parts = read_backbone(
            find_folder(backbone), config=config or PolyConfig(), max_tokens=max_tokens, seed=check_seed(seed)
        )
        return cls(parts, precision=precision).to(pick_device(device))

    @property
    def width(self) -> int:
        """D, the length of a vector."""
        return self.candidate_tower.width

    @property
    def most_codes(self) -> int:
        """M, how many codes a context can have."""
        if self.config.code_kind == "learnt":
            return self.config.codes
        more = 1 if self.config.code_kind == "last_and_first" else 0
        return min(self.config.codes + more, self.tokenizer.max_tokens)

    @property
    def siamese(self) -> bool:
        """Never: a context has codes."""
        return False

    @property
    def attention_scale(self) -> float:
        """How sharply a candidate attends to the codes of a context."""
        return self.code_layer.candidate_scale.value

    @property
    def score_scale(self) -> float:
        """What a score is multiplied by in the end."""
        return self.code_layer.logit_scale.value

    def context_codes(self, ids: Sequence[Sequence[int]]) -> CodeTensors:
        """The codes of each context."""
        codes: CodeTensors = self.code_layer(self.context_encoder(ids))
        return codes

    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vector of each candidate."""
        vectors: Tensor = self.candidate_tower(ids)
        return vectors

    def match_codes(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: each candidate attends over the codes of each context; one way of a symmetric score."""
        mask = (
            None if self.config.code_kind == "learnt" else codes.mask
        )  # every context has all that are learnt
        scores = match(codes.vectors, candidates, mask=mask, scale=self.code_layer.candidate_scale())
        scale = self.code_layer.logit_scale()
        return scores * (scale.to(scores.device) if torch.is_tensor(scale) else scale)

    @torch.inference_mode()
    def explain(self, context: Context, candidate: str) -> Explanation:
        """Which codes and which tokens of the context carried the score of the candidate.

        Of a symmetric model it explains one of the two directions, the one in which the context has codes.
        """
        self._check_evaluating()
        passages = self._passages([check_context(context), check_text(candidate, "candidate")])
        left, right = self.tokenizer.encode(passages)
        tokens = self.context_encoder([left.ids])
        found = shares(
            tokens.states[0].float(),
            self.code_layer.attention(tokens)[0],
            self.candidate_vectors([right.ids])[0],
            scale=self.code_layer.candidate_scale.value,
            logit_scale=self.code_layer.logit_scale.value,
            unit_codes=self.config.similarity == "cosine",
        )
        found, pieces = by_characters(found, self.tokenizer.pieces(passages[0]))
        return Explanation(
            context=passages[0].text,
            candidate=candidate,
            score=float(found.code_parts.sum()),
            codes=code_shares(found),
            tokens=token_shares(found, pieces),
            attention=found.attention,
            context_cut=left.cut,
            candidate_cut=right.cut,
        )

    @torch.inference_mode()
    def attention_entropies(self, contexts: Sequence[Context], candidates: Sequence[str]) -> dict[str, float]:
        """How evenly the two attentions are spread: mean entropies, as shares of a flat attention's.

        ``code_entropy`` is of all candidates over the codes of each context, ``token_entropy`` of learnt
        codes over its tokens: near 1.00 codes, or what candidates see of them, no longer differ. What there
        is only one of is left out. A few dozen texts are enough: all candidates are held against a batch of
        contexts at once. Of a symmetric model it is the way in which contexts have codes.
        """
        self._check_evaluating()
        ids = self.token_ids(check_contexts(contexts), "context")
        vectors = torch.from_numpy(self.encode_candidates(candidates)).to(next(self.parameters()).device)
        parts = [
            attention_evenness(
                self.code_layer, self.context_encoder([ids[place] for place in batch]), vectors
            )
            for batch in batches_by_tokens([len(text) for text in ids], self._token_budget())
        ]
        found = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        return {name: float(each.mean()) for name, each in found.items() if len(each)}

    def check_one_way(self) -> None:
        if self.config.symmetric:
            raise InputError(
                "a symmetric score needs codes and vectors of both texts: use score, score_many, score_pairs"
            )

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Scores:
        there = super()._scores(contexts, candidates)
        if not self.config.symmetric:
            return there
        back = super()._scores(candidates, contexts)
        mean: Floats = (there.values + back.values.T) / np.float32(2)
        return Scores(mean, there.context_cuts, there.candidate_cuts)

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Floats:
        there = super()._pair_scores(contexts, candidates)
        if not self.config.symmetric:
            return there
        mean: Floats = (there + super()._pair_scores(candidates, contexts)) / np.float32(2)
        return mean

    @property
    def backbone(self) -> Encoder:
        """The encoder that reads contexts."""
        return self.context_encoder

    def _description(self) -> dict[str, object]:
        layer = self.code_layer
        return {
            "codes": f"{self.config.codes} {self.config.code_kind}",
            "candidates by": self.config.reduction,
            "towers": self.config.towers,
            "similarity": self.config.similarity,
            "symmetric": self.config.symmetric,
            "code scale": layer.code_scale.value,
            "candidate scale": layer.candidate_scale.value,
            "logit scale": layer.logit_scale.value,
            "scales learnt": self.config.learn_scales,
        }

    @classmethod
    def _read(cls, folder: Path, precision: Precision) -> Self:
        return cls(read_poly(folder), precision=precision)

    def _write(self, folder: Path) -> dict[str, Any]:
        parts = PolyParts(self.tokenizer, self.context_encoder, self.candidate_tower.encoder, self.code_layer)
        return write_poly(parts, folder)

    def _facts(self) -> dict[str, Any]:
        encoders = [self.context_encoder.facts(), self.candidate_tower.facts()]
        return {"config": asdict(self.config), "towers": encoders}
