"""The bi-encoder: one vector for the context, one for the candidate, and their product."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from tercet.config import BiConfig, PoolingConfig, Precision, Side
from tercet.errors import OutputError
from tercet.models.bi_folder import BiParts, read_backbone, read_bi, write_bi
from tercet.models.dual import DualEncoder
from tercet.models.sources import find_folder
from tercet.records import Floats
from tercet.runtime.precision import pick_device, set_precision


class BiEncoder(DualEncoder):
    """Sentence-BERT's scorer: the cosine or the dot product of two towers' vectors."""

    def __init__(self, parts: BiParts, *, precision: Precision = "fp32") -> None:
        super().__init__(parts.tokenizer, turn_separator=parts.config.turn_separator)
        self.config = parts.config
        self.context_tower = parts.context_tower
        self.candidate_tower = parts.candidate_tower
        self._prompt_tokens: dict[Side, int] = {
            "context": parts.tokenizer.prompt_length(parts.config.context_prompt),
            "candidate": parts.tokenizer.prompt_length(parts.config.candidate_prompt),
        }
        self.precision: Precision = precision
        for tower in (parts.context_tower, parts.candidate_tower):
            set_precision(tower.encoder, precision)
        self.eval()

    @classmethod
    def load(
        cls, source: str | PathLike[str], *, precision: Precision = "fp32", device: str | None = None
    ) -> Self:
        """The bi-encoder in a folder of tercet or sentence-transformers, or over a bare encoder's folder."""
        return cls(read_bi(find_folder(source)), precision=precision).to(pick_device(device))

    @classmethod
    def from_backbone(
        cls,
        backbone: str | PathLike[str],
        *,
        config: BiConfig | None = None,
        pooling: PoolingConfig | None = None,
        max_tokens: int | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """An untrained bi-encoder over any Hugging Face encoder; two towers both start from its weights."""
        parts = read_backbone(
            find_folder(backbone),
            pooling=pooling or PoolingConfig(),
            config=config or BiConfig(),
            max_tokens=max_tokens,
        )
        return cls(parts, precision=precision).to(pick_device(device))

    @property
    def width(self) -> int:
        """D, the length of a vector."""
        return self.candidate_tower.width

    def context_codes(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[B, 1, D]``: the one code of each context."""
        vectors: Tensor = self.context_tower(ids, prompt_tokens=self._prompt_tokens["context"])
        return vectors.unsqueeze(1)

    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vector of each candidate."""
        vectors: Tensor = self.candidate_tower(ids, prompt_tokens=self._prompt_tokens["candidate"])
        return vectors

    def prompt(self, side: Side) -> str:
        """What is put in front of every text of a side."""
        return self.config.context_prompt if side == "context" else self.config.candidate_prompt

    def match(self, codes: Floats, vectors: Floats) -> Floats:
        """``[B, C]``: the products of codes ``[B, 1, D]`` and candidates ``[C, D]``."""
        values: Floats = self._comparable(codes[:, 0]) @ self._comparable(vectors).T
        return values

    def match_pairs(self, codes: Floats, vectors: Floats) -> Floats:
        """``[B]``: the products of codes ``[B, 1, D]`` and one candidate each, ``[B, D]``."""
        products: Floats = self._comparable(codes[:, 0]) * self._comparable(vectors)
        sums: Floats = products.sum(axis=-1)
        return sums

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a folder that ``tercet.load`` and sentence-transformers read; gives its path."""
        if any(weight.dtype != torch.float32 for weight in self.parameters()):
            raise OutputError("a bf16 model has lost digits of its weights: load it in fp32 to save it")
        write_bi(BiParts(self.tokenizer, self.context_tower, self.candidate_tower, self.config), Path(path))
        return Path(path)

    def _comparable(self, vectors: Floats) -> Floats:
        """Vectors whose dot product is the score."""
        if self.config.similarity == "dot":
            return vectors
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        unit: Floats = vectors / np.maximum(lengths, np.float32(1e-12))
        return unit
