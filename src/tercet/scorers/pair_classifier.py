"""The classifier that a bi-encoder learns from labelled pairs: a softmax over its two vectors."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tercet.errors import InputError
from tercet.records import Floats
from tercet.settings.training import ConcatenationPart

ROWS = 4096
"""Pairs that are classified at once."""


def concatenate(left: Tensor, right: Tensor, parts: tuple[ConcatenationPart, ...]) -> Tensor:
    """``[B, parts * D]``: the named ones of ``u``, ``v``, ``|u − v|`` and ``u ∗ v``, concatenated.

    Sentence-BERT (Reimers & Gurevych, 2019), section 3.1 and table 6.
    """
    available = {"u": left, "v": right, "difference": (left - right).abs(), "product": left * right}
    return torch.cat([available[part] for part in parts], dim=-1)


@dataclass(frozen=True, eq=False)
class PairClassifier:
    """A linear layer over the vectors of a pair, and the names of its classes."""

    weights: Floats
    """``[k, parts * D]``"""
    concatenation: tuple[ConcatenationPart, ...]
    labels: tuple[str, ...] = ()
    """One name per class, or none."""

    def __post_init__(self) -> None:
        if self.labels and len(set(self.labels)) != len(self.weights):
            raise InputError(
                f"{len(self.weights)} classes need as many different labels, got {', '.join(self.labels)}"
            )

    @property
    def num_labels(self) -> int:
        """k, the number of classes."""
        return len(self.weights)

    def probabilities(self, left: Floats, right: Floats) -> Floats:
        """``[N, k]``: the probability of each class for each row of two matrices ``[N, D]`` of vectors."""
        found = [
            self._probabilities(left[start : start + ROWS], right[start : start + ROWS])
            for start in range(0, len(left), ROWS)
        ]
        joined: Floats = np.concatenate(found)
        return joined

    def _probabilities(self, left: Floats, right: Floats) -> Floats:
        features = concatenate(torch.from_numpy(left), torch.from_numpy(right), self.concatenation)
        logits = features @ torch.from_numpy(self.weights).T  # [N, k]
        values: Floats = logits.softmax(dim=1).numpy()
        return values
