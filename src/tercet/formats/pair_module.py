"""A cross-encoder of tercet inside ``sentence_transformers.CrossEncoder``.

Comparison heads and separated texts have no counterpart there. For such models ``modules.json`` names the
class below, which sentence-transformers 6 imports from tercet if it is told ``trust_remote_code=True``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from tercet.formats.storage import write_folder
from tercet.scorers.cross import CrossEncoder


class PairModule(nn.Module):
    """The only module of such a model: pairs of texts to the scores of tercet, without gradients."""

    save_in_root = True

    def __init__(self, scorer: CrossEncoder) -> None:
        super().__init__()
        self.scorer = scorer

    @classmethod
    def load(cls, folder: str) -> Self:
        """The module in a model folder."""
        return cls(CrossEncoder.load(Path(folder), device="cpu"))  # sentence-transformers moves it

    def save(self, folder: str) -> None:
        """Fill a folder that both libraries read."""
        write_folder(self.scorer, Path(folder))

    @property
    def max_seq_length(self) -> int:
        """The maximum number of tokens of a pair."""
        return self.scorer.tokenizer.max_tokens

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        return self.scorer.tokenizer.pretrained

    def preprocess(self, inputs: Sequence[Sequence[str]], prompt: str | None = None) -> dict[str, Any]:
        """The pairs, with the prompt before their first texts."""
        return {"pairs": [((prompt or "") + left, right) for left, right in inputs]}

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The features with ``scores``, ``[B, 1]``, to which the activation is already applied."""
        contexts, candidates = zip(*features["pairs"], strict=True)
        scores = torch.from_numpy(self.scorer.classify(contexts, candidates))
        return features | {"scores": scores.to(self.scorer.device)}
