"""The cross-encoder: one transformer encodes context and candidate together."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from tercet.encoders.encoder import SEPARABLE, Encoder
from tercet.encoders.packing import SeparateTexts
from tercet.errors import InputError
from tercet.inputs import check_seed
from tercet.records import Floats
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.heads import ComparisonHead, Head, activate
from tercet.scorers.neural import NeuralScorer
from tercet.scorers.persistence import Source
from tercet.settings.models import CrossConfig, Precision
from tercet.text.pairs import PairIds
from tercet.text.tokenizer import Tokenizer


class CrossParts(NamedTuple):
    """What a cross-encoder is assembled from."""

    tokenizer: Tokenizer
    encoder: Encoder
    head: Head | ComparisonHead
    config: CrossConfig


class CrossEncoder(NeuralScorer, CrossScorer):
    """The cross-encoder in torch."""

    def __init__(self, parts: CrossParts, *, precision: Precision = "fp32") -> None:
        config = parts.config
        if config.cross_text_weight is not None and parts.encoder.architecture not in SEPARABLE:
            known = ", ".join(sorted(SEPARABLE))
            raise InputError(
                f"cross_text_weight needs an encoder of {known}, and this is {parts.encoder.architecture}"
            )
        if config.candidate_segment and parts.encoder.segments < 2:
            raise InputError(
                f"candidate_segment needs token types, and the encoder {parts.encoder.architecture} has none"
            )
        super().__init__(parts.tokenizer, turn_separator=config.turn_separator, precision=precision)
        self.encoder = parts.encoder
        self.head = parts.head
        self.head.set_dropout(config.dropout)
        self._set_pairs(parts.tokenizer, config, segments=parts.encoder.segments)
        self._finish()  # the head stays in float32

    @classmethod
    def from_backbone(
        cls,
        backbone: Source,
        *,
        config: CrossConfig | None = None,
        max_tokens: int | None = None,
        seed: int = 0,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """An untrained cross-encoder built on any Hugging Face encoder."""
        return cls._new(
            backbone,
            config=config or CrossConfig(),
            max_tokens=max_tokens,
            seed=check_seed(seed),
            precision=precision,
            device=device,
        )

    @classmethod
    def _assemble(cls, parts: CrossParts, precision: Precision) -> Self:
        return cls(parts, precision=precision)

    def parts(self) -> CrossParts:
        """What the cross-encoder is assembled from."""
        return CrossParts(self.tokenizer, self.encoder, self.head, self.config)

    def forward(self, pairs: Sequence[PairIds]) -> Tensor:
        """``[B, k]``: the outputs of tokenized pairs before the activation, with gradients if enabled."""
        segments = [pair.segments for pair in pairs] if self._uses_segments else None
        starts = [pair.candidate_start for pair in pairs]
        weight = self.config.cross_text_weight
        separate = None if weight is None else SeparateTexts(starts, weight)
        states = self.encoder([pair.ids for pair in pairs], segments, separate)
        outputs: Tensor = self.head(states, starts)
        return outputs

    @torch.inference_mode()
    def _run_pairs(self, pairs: Sequence[PairIds]) -> Floats:
        outputs: Floats = activate(self(pairs), self.config.activation).cpu().numpy()
        return outputs

    @property
    def backbone(self) -> Encoder:
        """The encoder of pairs."""
        return self.encoder

    def _fingerprint_inputs(self) -> dict[str, Any]:
        config = asdict(self.config)
        if self.config.cross_text_weight is None:
            del config["cross_text_weight"]  # has no effect
        if not self.config.candidate_segment:
            del config["candidate_segment"]  # has no effect
        return {
            "config": config,
            "head": self.head.fingerprint_inputs(),
            **self.encoder.fingerprint_inputs(),
        }
