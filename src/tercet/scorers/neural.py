"""What all three scorers share: tokenizer, encoders, fingerprint, loading and saving."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from tercet.encoders.encoder import Encoder
from tercet.encoders.precision import pick_device, set_precision
from tercet.errors import InputError, OutputError, TruncationWarning, UnreadableTextWarning
from tercet.records import Context, Ints, Part, as_text
from tercet.scorers.fingerprint import fingerprint
from tercet.scorers.leave_one_out import ScoredPair
from tercet.scorers.persistence import Source, storage
from tercet.scorers.scorer import Scorer
from tercet.settings.chunks import ChunkConfig
from tercet.settings.encoding import EncodingConfig
from tercet.settings.models import ModelSpec, Precision, ScorerKind, Side
from tercet.text.chunks import split_text
from tercet.text.readable import find_unreadable
from tercet.text.tokenizer import Passage, Tokenizer
from tercet.text.words import Span

SPLIT_AT_ONCE = 64
"""Texts that are split into chunks together."""


class NeuralScorer(nn.Module, Scorer):
    """A scorer made of transformers."""

    kind: ClassVar[ScorerKind]

    def __init__(self, tokenizer: Tokenizer, *, turn_separator: str, precision: Precision) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.turn_separator = turn_separator
        self.precision: Precision = precision
        self.encoding = EncodingConfig()
        self._warned = False
        self._warned_of_script = False
        self._fingerprint: str | None = None

    @classmethod
    @abstractmethod
    def _assemble(cls, parts: Any, precision: Precision) -> Self:
        """The scorer made of ``parts``."""

    @abstractmethod
    def parts(self) -> Any:
        """What the scorer is assembled from."""

    @abstractmethod
    def _fingerprint_inputs(self) -> dict[str, Any]:
        """What determines a score apart from the weights and the tokenizer."""

    @abstractmethod
    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """The tokens of each text, in the form that the forward pass takes in training."""

    @abstractmethod
    def _description(self) -> dict[str, object]:
        """Properties that only this kind of scorer has."""

    @abstractmethod
    def _candidate_room(self) -> int:
        """How many tokens of a candidate the model reads."""

    @abstractmethod
    def _read_spans(self, passages: Sequence[Passage], truncated: tuple[int, int]) -> tuple[Span, Span]:
        """The characters of a context and of a candidate that were not truncated."""

    @property
    @abstractmethod
    def backbone(self) -> Encoder:
        """The encoder of contexts."""

    @classmethod
    def load(cls, source: Source, *, precision: Precision = "fp32", device: str | None = None) -> Self:
        """The scorer in a folder of tercet, sentence-transformers or transformers, or of a hub id."""
        target = pick_device(device, precision)
        parts, calibration = storage().parts(cls.kind, source)
        scorer = cls._assemble(parts, precision)
        scorer.calibration = calibration
        return scorer.to(target)

    @classmethod
    def from_spec(cls, spec: ModelSpec, *, device: str | None = None) -> Self:
        """An untrained scorer as specified."""
        return cls._new(
            spec.source, config=spec.config(), max_tokens=spec.max_tokens, seed=spec.seed, device=device
        )

    @classmethod
    def _new(
        cls, source: Source, *, precision: Precision = "fp32", device: str | None = None, **options: Any
    ) -> Self:
        target = pick_device(device, precision)
        parts = storage().new_parts(cls.kind, source, **options)
        return cls._assemble(parts, precision).to(target)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a new folder that ``tercet.load`` reads, and return its path."""
        self.check_float32()
        return storage().save(self, Path(path))

    def chunks(self, texts: Sequence[str], config: ChunkConfig) -> list[list[Part]]:
        """The chunks of each text, in order; a text that fits is one chunk."""
        room = self._candidate_room()
        size = room if config.size is None else config.size
        if size > room or config.overlap >= size:
            raise InputError(
                f"a chunk must have at most {room} tokens, which this model reads beside its special tokens, "
                f"and more than the overlap of {config.overlap}, got a size of {size}"
            )
        parts: list[list[Part]] = []
        for start in range(0, len(texts), SPLIT_AT_ONCE):  # tokens with their characters need much memory
            some = texts[start : start + SPLIT_AT_ONCE]
            pieces = self.tokenizer.word_pieces(some)
            parts += [split_text(text, of, config, size=size) for text, of in zip(some, pieces, strict=True)]
        return parts

    def __repr__(self) -> str:
        name, encoder = type(self).__name__, self.backbone
        layers = encoder.transformer.config.num_hidden_layers
        size = f"{encoder.architecture}, {layers} layers, {encoder.width} wide"
        return f"<{name}: {size}, {self.precision} on {self.device}>"

    def check_float32(self) -> None:
        """Raise if weights have lost precision, so that they should not be saved."""
        if self.precision != "fp32" or any(weight.dtype != torch.float32 for weight in self.parameters()):
            raise OutputError("the weights are not in float32: load the model in fp32 to save it")

    def describe(self) -> dict[str, object]:
        """The properties of the scorer, for display."""
        config = self.backbone.transformer.config
        threshold = None if self.calibration is None else self.calibration.threshold
        return {
            "kind": self.kind,
            "fingerprint": self.fingerprint,
            "architecture": self.backbone.architecture,
            "layers": config.num_hidden_layers,
            "width": self.backbone.width,
            "parameters": sum(weight.numel() for weight in self.parameters()),
            "max tokens": self.tokenizer.max_tokens,
            "packed": self.backbone.packable,
            **self._description(),
            "calibrated": "no" if threshold is None else f"match from a score of {threshold:.4g}",
        }

    @property
    def fingerprint(self) -> str:
        """Identifies these weights, settings and tokenizer; the same in every precision."""
        if self._fingerprint is not None:
            return self._fingerprint
        return fingerprint(self, self.fingerprint_inputs)

    @property
    def fingerprint_inputs(self) -> dict[str, Any]:
        """Everything that determines a score apart from the weights."""
        return {"kind": self.kind, "tokenizer": self.tokenizer.identity, **self._fingerprint_inputs()}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def set_precision(self, precision: Precision) -> None:
        """Compute in ``precision`` from now on. bf16 and fp16 cannot be undone: they discard digits of the
        weights."""
        if precision != "fp32":
            self._fingerprint = self.fingerprint  # before digits are lost
        self.precision = precision
        for module in self.modules():
            if isinstance(module, Encoder):
                set_precision(module, precision)

    def _finish(self) -> None:
        """Prepare for scoring, at the end of the constructor."""
        self.set_precision(self.precision)
        self.eval()

    def _check_evaluating(self) -> None:
        if self.training:
            raise InputError("the scorer is in training mode, where dropout is active: call .eval() first")

    @property
    def token_budget(self) -> int:
        """Tokens per forward pass on the model's device."""
        return self.encoding.cpu_tokens if self.device.type == "cpu" else self.encoding.gpu_tokens

    def _passages(self, texts: Sequence[Context]) -> list[Passage]:
        return [
            Passage(text) if isinstance(text, str) else Passage(self.turn_separator.join(text), keep_end=True)
            for text in texts
        ]

    def _scored_pair(self, context: Context, candidate: str) -> ScoredPair:
        scores = self._finite_scores([context], [candidate])
        truncated = int(scores.context_truncated.item()), int(scores.candidate_truncated.item())
        spans = self._read_spans(self._passages([context, candidate]), truncated)
        return ScoredPair(
            context=context,
            candidate=candidate,
            score=float(scores.values.item()),
            separator=self.turn_separator,
            context_span=spans[0],
            candidate_span=spans[1],
            context_truncated=truncated[0],
            candidate_truncated=truncated[1],
        )

    def _warn_once(self, truncated: Ints, what: str) -> None:
        count = int(np.count_nonzero(truncated))
        if not count or self._warned:
            return
        self._warned = True
        warnings.warn(
            f"{count} of {truncated.size} {what} are longer than this model's {self.tokenizer.max_tokens} "
            "tokens and were truncated (shown once; chunk=, --chunk splits long candidates)",
            TruncationWarning,
            stacklevel=2,
        )

    def _warn_of_script(self, texts: Sequence[Context]) -> None:
        """Warn once about texts that the vocabulary cannot read."""
        if self._warned_of_script:
            return
        found = find_unreadable(map(as_text, texts), self.tokenizer.spans)
        if found is None:
            return
        self._warned_of_script = True
        warnings.warn(
            f"this model's vocabulary cannot read {found.script}: {found.share:.0%} of {found.letters:,} "
            "letters are unknown or taken apart, so scores of such texts mean little. Use a model for this "
            "language, or search by words (tercet search --mode lexical)",
            UnreadableTextWarning,
            stacklevel=2,
        )


def distinct(texts: Sequence[Context]) -> tuple[list[Context], Ints]:
    """The distinct texts, and for each text the position of its copy among them."""
    position = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(position), np.array([position[text] for text in texts], dtype=np.int64)
