"""What all three scorers share: a tokenizer, transformers, a folder and a fingerprint."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from tercet.calibration import read_calibration, write_calibration
from tercet.config import BatchConfig, Precision, Side
from tercet.errors import InputError, OutputError, TruncationWarning
from tercet.files import new_folder
from tercet.models.encoder import Encoder
from tercet.models.fingerprint import fingerprint
from tercet.models.manifest import write_manifest
from tercet.models.scorer import Scorer
from tercet.models.sources import find_folder
from tercet.models.tokenizer import Passage, Tokenizer
from tercet.records import Context, Counts
from tercet.runtime.precision import pick_device, set_precision


class NeuralScorer(nn.Module, Scorer):
    """A scorer made of transformers; its kinds differ in how these read."""

    kind: ClassVar[str]

    def __init__(self, tokenizer: Tokenizer, *, turn_separator: str, precision: Precision) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.turn_separator = turn_separator
        self.precision: Precision = precision
        self.batching = BatchConfig()
        self._warned = False
        self._fingerprint: str | None = None

    @classmethod
    @abstractmethod
    def _read(cls, folder: Path, precision: Precision) -> Self:
        """The scorer in a folder."""

    @abstractmethod
    def _write(self, folder: Path) -> dict[str, Any]:
        """Fill a folder; gives what ``tercet.json`` should say."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """All that decides a score beside weights and tokenizer."""

    @abstractmethod
    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """The tokens of each text of a side, as this scorer's modules take them in training."""

    @abstractmethod
    def _description(self) -> dict[str, object]:
        """What sets this scorer apart from others of its kind."""

    @property
    @abstractmethod
    def backbone(self) -> Encoder:
        """The encoder that reads contexts."""

    @classmethod
    def load(
        cls, source: str | PathLike[str], *, precision: Precision = "fp32", device: str | None = None
    ) -> Self:
        """The scorer of this kind in a folder, ours or another library's, or of a hub id."""
        folder = find_folder(source)
        scorer = cls._read(folder, precision)
        scorer.calibration = read_calibration(folder)
        return scorer.to(pick_device(device))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a folder that ``tercet.load`` reads, whole or not at all; gives its path."""
        self.check_digits()
        with new_folder(Path(path)) as folder:
            settings = {"architecture": self.backbone.architecture, **self._write(folder)}
            write_manifest(folder, kind=self.kind, fingerprint=self.fingerprint, settings=settings)
            write_calibration(self.calibration, folder)
        return Path(path)

    def check_digits(self) -> None:
        """Raise if the weights have lost digits that a folder should have."""
        if self.precision != "fp32" or any(weight.dtype != torch.float32 for weight in self.parameters()):
            raise OutputError("only float32 has all digits of the weights: load the model in fp32 to save it")

    def describe(self) -> dict[str, object]:
        """What this scorer is, in a few words and numbers."""
        config = self.backbone.transformer.config
        threshold = None if self.calibration is None else self.calibration.threshold
        return {
            "kind": self.kind,
            "fingerprint": self.fingerprint,
            "architecture": self.backbone.architecture,
            "layers": config.num_hidden_layers,
            "width": self.backbone.width,
            "parameters": sum(weight.numel() for weight in self.parameters()),
            "tokens read": self.tokenizer.max_tokens,
            "packed": self.backbone.packable,
            **self._description(),
            "calibrated": "no" if threshold is None else f"match from a score of {threshold:.4g}",
        }

    @property
    def fingerprint(self) -> str:
        """A short name for these weights, settings and tokenizer; the same in fp32 and bf16."""
        if self._fingerprint is not None:
            return self._fingerprint
        return fingerprint(self, self.facts)

    @property
    def facts(self) -> dict[str, Any]:
        """All that decides a score beside the weights."""
        return {"kind": self.kind, "tokenizer": self.tokenizer.identity, **self._facts()}

    def set_precision(self, precision: Precision) -> None:
        """Compute in ``precision`` from now on; bf16 forgets digits, and cannot be taken back."""
        if precision != "fp32":
            self._fingerprint = self.fingerprint  # before digits are lost
        self.precision = precision
        for module in self.modules():
            if isinstance(module, Encoder):
                set_precision(module, precision)

    def _finish(self) -> None:
        """Get ready to score."""
        self.set_precision(self.precision)
        self.eval()

    def _check_evaluating(self) -> None:
        if self.training:
            raise InputError("a scorer in training mode drops numbers at random: call .eval() before scoring")

    def _token_budget(self) -> int:
        on_cpu = next(self.parameters()).device.type == "cpu"
        return self.batching.tokens if on_cpu else self.batching.gpu_tokens

    def _passages(self, texts: Sequence[Context]) -> list[Passage]:
        return [
            Passage(text) if isinstance(text, str) else Passage(self.turn_separator.join(text), keep_end=True)
            for text in texts
        ]

    def _warn_once(self, cuts: Counts, what: str, how: str) -> None:
        cut = int(np.count_nonzero(cuts))
        if not cut or self._warned:
            return
        self._warned = True
        warnings.warn(
            f"{cut} of {cuts.size} {what} were longer than the {self.tokenizer.max_tokens} tokens this model "
            f"reads, and were cut (said once; {how} the tokens)",
            TruncationWarning,
            stacklevel=2,
        )


def distinct(texts: Sequence[Context]) -> tuple[list[Context], Counts]:
    """The different texts, and which of them each one is."""
    place = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    return list(place), np.array([place[text] for text in texts], dtype=np.int64)
