"""Dual encoders that torch runs."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tercet.records import Codes, Floats
from tercet.scorers.codes import CodeTensors
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.finite import finite_scores
from tercet.scorers.neural import NeuralScorer
from tercet.settings.models import Side


class DualEncoder(NeuralScorer, DualScorer):
    """A bi- or poly-encoder in torch."""

    @abstractmethod
    def context_codes(self, ids: Sequence[Sequence[int]]) -> CodeTensors:
        """The codes of tokenized contexts, with gradients if enabled."""

    @abstractmethod
    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vectors of tokenized candidates, with gradients if enabled."""

    @abstractmethod
    def match_tensors(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: the scores of codes against candidates ``[C, D]`` or ``[B, C, D]``."""

    @torch.inference_mode()
    def match_codes(self, codes: Codes, vectors: "Floats | Tensor") -> Floats:
        """As ``match``, but of a symmetric score this is one direction."""
        mask = torch.from_numpy(codes.mask).to(self.device)
        tensors = CodeTensors(_tensor(codes.vectors).to(self.device), mask)
        candidates = vectors if isinstance(vectors, Tensor) else _tensor(vectors)
        return finite_scores(to_numpy(self.match_tensors(tensors, candidates.to(self.device))))

    @torch.inference_mode()
    def _match(self, codes: CodeTensors, vectors: Tensor) -> Floats:
        return to_numpy(self.match_tensors(codes, vectors))

    @torch.inference_mode()
    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> CodeTensors:
        if side == "context":
            codes = self.context_codes(ids)
            return CodeTensors(codes.vectors.float(), codes.mask)
        vectors = self.candidate_vectors(ids).float().unsqueeze(1)
        return CodeTensors(vectors, torch.ones(len(vectors), 1, dtype=torch.bool, device=vectors.device))

    @torch.inference_mode()
    def _joined(self, parts: Sequence[CodeTensors]) -> CodeTensors:
        if len(parts) == 1:
            return parts[0]
        most = max(part.mask.shape[1] for part in parts)
        return CodeTensors(
            torch.cat([padded_codes(part.vectors, most) for part in parts]),
            torch.cat([padded_codes(part.mask, most) for part in parts]),
        )

    def _numpy(self, codes: CodeTensors) -> Codes:
        return Codes(to_numpy(codes.vectors), codes.mask.cpu().numpy())


def to_numpy(tensor: Tensor) -> Floats:
    """The values in float32, on the CPU."""
    values: Floats = tensor.float().cpu().numpy()
    return values


def padded_codes(codes: Tensor, count: int) -> Tensor:
    """``[B, count, ...]``: codes ``[B, M, ...]`` with zeros for those that are missing."""
    if codes.shape[1] == count:
        return codes
    missing = codes.new_zeros(len(codes), count - codes.shape[1], *codes.shape[2:])
    return torch.cat([codes, missing], dim=1)


def _tensor(vectors: Floats) -> Tensor:
    """The vectors without a copy, even if they are memory-mapped."""
    values = np.ascontiguousarray(vectors, dtype=np.float32)
    return torch.from_numpy(values if values.flags.writeable else np.asarray(_ReadOnlyView(values)))


class _ReadOnlyView:
    """An array that hides that it is read-only: torch would warn, though nothing here writes to it."""

    def __init__(self, values: Floats) -> None:
        self.values = values  # keeps the memory alive
        self.__array_interface__ = values.__array_interface__ | {"data": (values.ctypes.data, False)}
