"""Scores of a trained poly-encoder, from which cross-encoders learn."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from dual_training import DualSettings
from model import DEVICE, embed
from numpy.typing import NDArray
from pairs import DIALOGUES, PairSets
from safetensors.torch import load_file
from scorer_models import Poly, read_weights


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
    """Scores the right texts of sets; codes and vectors are made once (49 kB per context)."""

    def __init__(self, poly: Poly, data: PairSets, names: Iterable[str]) -> None:
        self.poly = poly
        self.codes, self.vectors = {}, {}
        for name in names:
            self.codes[name] = embed(
                poly.context,
                data.file,
                data.left[name],
                max_tokens=DualSettings.left_tokens,
                keep_end=name in DIALOGUES,
                reduce=lambda states, packed: poly.code_vectors(states, packed).half(),
                batch_tokens=60_000,
            )
            right = embed(poly.candidate, data.file, data.right[name], max_tokens=DualSettings.right_tokens)
            self.vectors[name] = right.half()

    @torch.no_grad()
    def scores(self, name: str, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> NDArray[np.float32]:
        """``[B, C]``.

        Args:
            lefts: ``[B]``, rows of the contexts.
            rights: ``[B, C]``, rows of the candidates.
        """
        codes = self.codes[name][torch.from_numpy(lefts).to(DEVICE)].float()
        candidates = self.vectors[name][torch.from_numpy(rights).to(DEVICE)].float()
        return self.poly.match(codes, candidates).cpu().numpy()
