"""What compiled scorers share."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tercet.encoders.openvino.graphs import GraphPart, Transformer
from tercet.errors import InputError, OutputError
from tercet.records import Codes, Floats
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.finite import finite_scores
from tercet.scorers.text_scorer import TextScorer


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a compiled scorer comes from.

    ``fingerprint`` is None if only torch can compute it. ``with_torch`` loads the same scorer in torch, and
    ``again`` compiles it again, in another process.
    """

    folder: Path
    fingerprint: str | None
    with_torch: Callable[[], Any]
    again: Callable[[], Any] | None = None


class CompiledScorer(TextScorer):
    """What the three compiled scorers share."""

    runtime = "openvino"
    origin: Origin
    config: Any
    _transformer: Transformer

    @abstractmethod
    def graph_parts(self) -> dict[str, GraphPart]:
        """The transformers and their graphs; those of two sides that share one are one part."""

    @property
    def fingerprint(self) -> str:
        """Identifies these weights, settings and tokenizer, as in torch."""
        return self.origin.fingerprint or str(self.origin.with_torch().fingerprint)

    @property
    def token_budget(self) -> int:
        """Tokens per forward pass."""
        return self.encoding.cpu_tokens

    @property
    def place(self) -> str:
        """The runtime and the device, for display."""
        return "openvino on cpu"

    @property
    def is_on_cpu(self) -> bool:
        """True: other devices need torch."""
        return True

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a new folder that ``tercet.load`` reads, and return its path. Needs torch."""
        scorer = self.origin.with_torch()
        if self.origin.fingerprint not in (None, scorer.fingerprint):
            raise OutputError(f"{self.origin.folder} has changed since this model was loaded: load it again")
        scorer.config, scorer.calibration = self.config, self.calibration
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
            "runtime": self.place,
            **self._description(),
            "calibrated": "no" if threshold is None else f"match from a score of {threshold:.4g}",
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes compile the model again: a compiled graph cannot be moved."""
        if self.origin.again is None:
            raise InputError("this scorer has no folder to be loaded from again: load it with tercet.load")
        return self.origin.again, (), {"calibration": self.calibration, "encoding": self.encoding}

    def __repr__(self) -> str:
        architecture = self._transformer.settings["model_type"]
        return f"<{type(self).__name__}: {architecture}, {self._transformer.width} wide, {self.precision}>"


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


def one_code(vectors: Floats) -> Codes:
    """The vectors as codes, one per text."""
    return Codes(vectors[:, None], np.ones((len(vectors), 1), dtype=np.bool_))


def _padded(codes: Codes, count: int) -> Codes:
    missing = count - codes.mask.shape[1]
    if not missing:
        return codes
    return Codes(
        np.pad(codes.vectors, ((0, 0), (0, missing), (0, 0))), np.pad(codes.mask, ((0, 0), (0, missing)))
    )
