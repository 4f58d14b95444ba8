"""The bi-encoder: one vector for the context, one for the candidate, and their product."""

from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.linalg import vector_norm
from torch.nn.functional import normalize

from tercet.config import BiConfig, PoolingConfig, Precision, Side
from tercet.models.bi_folder import BiParts, read_backbone, read_bi, write_bi
from tercet.models.code_layer import CodeTensors
from tercet.models.dual import DualEncoder
from tercet.models.encoder import Encoder
from tercet.models.match import match
from tercet.models.sources import find_folder
from tercet.runtime.precision import pick_device


class BiEncoder(DualEncoder):
    """Sentence-BERT's scorer: the cosine or the dot product of two towers' vectors."""

    kind = "bi"

    def __init__(self, parts: BiParts, *, precision: Precision = "fp32") -> None:
        super().__init__(parts.tokenizer, turn_separator=parts.config.turn_separator, precision=precision)
        self.config = parts.config
        self.context_tower = parts.context_tower
        self.candidate_tower = parts.candidate_tower
        self._prompt_tokens: dict[Side, int] = {
            "context": parts.tokenizer.prompt_length(parts.config.context_prompt),
            "candidate": parts.tokenizer.prompt_length(parts.config.candidate_prompt),
        }
        self._finish()

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

    @property
    def most_codes(self) -> int:
        """M, which is 1."""
        return 1

    @property
    def siamese(self) -> bool:
        """Whether one tower reads both sides alike."""
        prompts = self._prompt_tokens
        return self.context_tower is self.candidate_tower and prompts["context"] == prompts["candidate"]

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

    def prompt(self, side: Side) -> str:
        """What is put in front of every text of a side."""
        return self.config.context_prompt if side == "context" else self.config.candidate_prompt

    @property
    def by_angle(self) -> bool:
        """Whether scores compare the directions of vectors, whatever their lengths."""
        return self.config.similarity == "cosine"

    def match_codes(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: the products of the one code of each context and its candidates."""
        if self.config.similarity == "dot":
            return match(codes.vectors, candidates)
        lengths = vector_norm(candidates, dim=-1).clamp(min=1e-12)  # a copy of unit vectors would be large
        cosines: Tensor = match(normalize(codes.vectors, dim=-1), candidates) / lengths
        return cosines

    @property
    def backbone(self) -> Encoder:
        """The encoder that reads contexts."""
        return self.context_tower.encoder

    def _description(self) -> dict[str, object]:
        return {
            "vectors": self.width,
            "towers": self.config.towers,
            "pooling": " + ".join(self.context_tower.pooling.kinds),
            "similarity": self.config.similarity,
            "context prompt": self.config.context_prompt,
            "candidate prompt": self.config.candidate_prompt,
        }

    @classmethod
    def _read(cls, folder: Path, precision: Precision) -> Self:
        return cls(read_bi(folder), precision=precision)

    def _write(self, folder: Path) -> dict[str, Any]:
        write_bi(BiParts(self.tokenizer, self.context_tower, self.candidate_tower, self.config), folder)
        return {"turn_separator": self.config.turn_separator}

    def _facts(self) -> dict[str, Any]:
        towers = [tower.facts() for tower in (self.context_tower, self.candidate_tower)]
        return {"config": asdict(self.config), "towers": towers[: self.config.towers]}
