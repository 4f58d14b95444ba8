"""Dual encoders that torch runs."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from weakref import ref

import numpy as np
import torch
from torch import Tensor

from tercet.arrays import unit_vectors
from tercet.index.scan import Scan
from tercet.inputs import check_candidates, check_context, check_contexts
from tercet.records import Codes, Context, Floats, Progress, Ranked, Scores
from tercet.scorers.codes import CodeTensors
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.finite import finite_scores
from tercet.scorers.gpu.candidates import DeviceCandidates
from tercet.scorers.gpu.scan import DeviceScan
from tercet.scorers.gpu.vectors import DeviceVectors
from tercet.scorers.neural import NeuralScorer
from tercet.scorers.overflow import normalize
from tercet.settings.index import DeviceStorage
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

    def device_candidates(
        self,
        candidates: Iterable[str],
        *,
        storage: DeviceStorage = "bfloat16",
        on_progress: Progress | None = None,
    ) -> DeviceCandidates:
        """Candidates that are encoded once and stay on the model's device, for ``rank`` and ``score``.

        Args:
            storage: how they are stored there. ``rank`` returns the same results for all.
            on_progress: called with the number of candidates done since the last call.
        """
        self.check_asymmetric()
        texts = check_candidates(candidates)
        encoded = self._encode(texts, "candidate", on_progress)
        vectors = self._comparable(self._finite(encoded.codes).vectors[:, 0])
        kept = DeviceVectors(np.ascontiguousarray(vectors), device=self.device, storage=storage)
        return DeviceCandidates(tuple(texts), kept, encoded.truncated, self.fingerprint, ref(self))

    def device_scan(self) -> Scan | None:
        """How an index is searched on the model's device; None if that is a CPU."""
        return None if self.is_on_cpu else DeviceScan(self.device)

    def rank_many(
        self, contexts: Iterable[Context], candidates: Iterable[str], k: int = 10
    ) -> list[list[Ranked]]:
        """The ``k`` best candidates for each context; those of ``device_candidates`` are not copied."""
        if not isinstance(candidates, DeviceCandidates):
            return super().rank_many(contexts, candidates, k)
        candidates.check_model(self)
        encoded = self._encode(check_contexts(contexts), "context")
        codes = self._finite(encoded.codes)
        comparable = Codes(self._comparable(codes.vectors), codes.mask)
        found = candidates.vectors.search(comparable, k, scale=self.attention_scale)
        return [
            [
                candidates.ranked(int(at), float(score), context_truncated=int(truncated))
                for at, score in zip(ids, scores * np.float32(self.score_scale), strict=True)
            ]
            for ids, scores, truncated in zip(found.ids, found.scores, encoded.truncated, strict=True)
        ]

    def rank(self, context: Context, candidates: Iterable[str], k: int = 10) -> list[Ranked]:
        """The ``k`` best candidates, best first; those of ``device_candidates`` are not copied."""
        if not isinstance(candidates, DeviceCandidates):
            return super().rank(context, candidates, k)
        return self.rank_many([check_context(context)], candidates, k)[0]

    def score(self, context: Context, candidates: Iterable[str]) -> Floats:
        """``[C]``: the score of each candidate; those of ``device_candidates`` are not copied."""
        row: Floats = self.scores([check_context(context)], candidates).values[0]
        return row

    def scores(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Scores:
        """As ``score_many``, with the number of truncated tokens."""
        if not isinstance(candidates, DeviceCandidates):
            return super().scores(contexts, candidates)
        candidates.check_model(self)
        checked = check_contexts(contexts)
        rows, truncated = [], []
        for group in self._groups(len(checked)):
            left = self._encode(checked[group], "context")
            rows.append(self._scores_on_device(left.codes, candidates.vectors))
            truncated.append(left.truncated)
        return Scores(
            finite_scores(np.concatenate(rows)),
            np.concatenate(truncated)[:, None],
            candidates.truncated[None, :],
        )

    @torch.inference_mode()
    def _scores_on_device(self, codes: CodeTensors, vectors: DeviceVectors) -> Floats:
        """``[B, C]``: the scores of vectors that are comparable, rounded as they are stored."""
        comparable = normalize(codes.vectors) if self.uses_cosine else codes.vectors
        scores = vectors.scores(CodeTensors(comparable, codes.mask), scale=self.attention_scale)
        return to_numpy(scores * self.score_scale)

    def _comparable(self, vectors: Floats) -> Floats:
        """The vectors in the form in which inner products compare them."""
        return unit_vectors(vectors) if self.uses_cosine else vectors

    @torch.inference_mode()
    def match_codes(self, codes: Codes, vectors: "Floats | Tensor | DeviceVectors") -> Floats:
        """As ``match``, but of a symmetric score this is one direction."""
        if isinstance(vectors, DeviceVectors):
            on_device = (torch.from_numpy(each).to(self.device) for each in (codes.vectors, codes.mask))
            return finite_scores(self._scores_on_device(CodeTensors(*on_device), vectors))
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
