"""What all three scorers share in torch: encoders, fingerprint, precision, loading and saving."""

from abc import abstractmethod
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from tercet.encoders.encoder import Encoder
from tercet.encoders.precision import pick_device, set_precision
from tercet.errors import InputError, OutputError
from tercet.scorers.fingerprint import fingerprint
from tercet.scorers.persistence import Source, storage
from tercet.scorers.text_scorer import TextScorer
from tercet.settings.models import ModelSpec, Precision
from tercet.text.tokenizer import Tokenizer


class NeuralScorer(nn.Module, TextScorer):
    """A scorer made of transformers that torch runs."""

    runtime = "torch"

    def __init__(self, tokenizer: Tokenizer, *, turn_separator: str, precision: Precision) -> None:
        super().__init__()
        self._set_text(tokenizer, turn_separator=turn_separator, precision=precision)
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
            "runtime": self.place,
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

    def _check_ready(self) -> None:
        if self.training:
            raise InputError("the scorer is in training mode, where dropout is active: call .eval() first")

    @property
    def token_budget(self) -> int:
        """Tokens per forward pass on the model's device."""
        return self.encoding.cpu_tokens if self.is_on_cpu else self.encoding.gpu_tokens

    @property
    def place(self) -> str:
        """The runtime and the device, for display."""
        return f"torch on {self.device}"

    @property
    def is_on_cpu(self) -> bool:
        """Whether the weights are on a CPU."""
        return self.device.type == "cpu"
