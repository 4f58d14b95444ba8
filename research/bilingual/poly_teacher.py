"""Scores of a trained poly-encoder, from which cross-encoders learn."""

from pathlib import Path

import numpy as np
import torch
from dual_training import DualSettings
from model import DEVICE, Packed, embed
from numpy.typing import NDArray
from pairs import DIALOGUES, PairSets
from safetensors.torch import load_file
from scorer_models import Poly, read_weights
from torch import Tensor


def read_poly(work: Path) -> Poly:
    """The poly-encoder of WORK/poly.safetensors."""
    weights = load_file(work / "poly.safetensors")
    poly = Poly(
        read_weights(work, "backbone"),
        codes=len(weights["codes"]),
        seed=0,
        code_scale=DualSettings.code_scale,
        candidate_scale=DualSettings.candidate_scale,
    )
    poly.load_state_dict(weights, strict=False)
    return poly.requires_grad_(False)


class PolyTeacher:
    """Scores right texts of the sets; their vectors are made once."""

    def __init__(self, poly: Poly, data: PairSets) -> None:
        self.poly, self.data = poly, data
        self.vectors = {
            name: embed(
                poly.candidate, data.file, data.right[name], max_tokens=DualSettings.right_tokens
            ).half()
            for name in data.names
        }

    @torch.no_grad()
    def scores(self, name: str, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> Tensor:
        """``[B, C]``.

        Args:
            lefts: ``[B]``, rows of the contexts.
            rights: ``[B, C]``, rows of the candidates.
        """
        spans = self.data.left[name][lefts]
        packed = Packed(*self.data.file.sequences(spans, DualSettings.left_tokens, name in DIALOGUES))
        codes = self.poly.code_vectors(self.poly.context(packed), packed)
        candidates = self.vectors[name][torch.from_numpy(rights).to(DEVICE)].float()
        return self.poly.match(codes, candidates)
