"""Vectors that stay on a device, in few bits, and a search whose results are those of the full vectors.

The device scores rounded vectors ``v̂``. A product with a code ``y`` is off by at most ``‖y‖ ‖v − v̂‖``, which
bounds how far off a score can be, so the best candidates are among those that come close to the k-th best.
Only these are scored again, in float64 and from the full vectors, which stay in the memory of the host.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tercet.errors import DeviceMemoryError, InputError
from tercet.index.base import SearchResult
from tercet.index.scoring import TopK, exact_scores, relative_rounding_error, score_growth, stack
from tercet.inputs import check_choice, check_k, check_scale
from tercet.records import Bools, Certainty, Codes, Floats, Ints
from tercet.scorers.codes import CodeTensors
from tercet.scorers.finite import finite_vectors
from tercet.scorers.gpu.choice import match_kind
from tercet.scorers.match import match
from tercet.settings.index import DEVICE_STORAGES, DeviceStorage

TYPES: dict[DeviceStorage, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.int8,
}
MAX_INT8 = 127
ROWS_AT_ONCE = 2**16
"""Vectors that are rounded or scored again together, which bounds the memory."""
SCORES_AT_ONCE = 2**27
"""Scores of several contexts on the device: 512 MB."""
KEPT_FREE = 2**30
"""Bytes of a GPU that vectors leave for models and scores."""


class DeviceVectors:
    """Vectors ``[C, D]`` on a device, such as a GPU.

    Args:
        vectors: float32, on the host; they are kept there too, without a copy, and must not change.
        device: where the rounded vectors are, for example ``cuda``.
        storage: ``bfloat16`` or ``float16`` need half the memory of ``float32``, ``int8`` a quarter. Results
            are the same; with coarser vectors, more candidates are scored again.
    """

    def __init__(
        self, vectors: Floats, *, device: torch.device | str, storage: DeviceStorage = "bfloat16"
    ) -> None:
        check_choice("storage", storage, DEVICE_STORAGES)
        self.exact = _checked(vectors)
        self.storage: DeviceStorage = storage
        self.device = torch.device(device)
        _check_memory(self.exact.shape, self.device, storage)
        self.stored = torch.empty(self.exact.shape, dtype=TYPES[storage], device=self.device)
        self.row_scales = (
            torch.empty(len(self.exact), device=self.device) if storage == "int8" else None
        )  # [C]
        self.error = 0.0
        """The largest ``‖v − v̂‖``."""
        self.max_norm = 0.0
        """The norm of the longest vector, rounded or not."""
        for rows in self._blocks():
            self._store(rows)

    def __len__(self) -> int:
        return len(self.exact)

    def __repr__(self) -> str:
        return f"<DeviceVectors: {len(self):,} of {self.width} numbers, {self.storage} on {self.device}>"

    @property
    def width(self) -> int:
        """D, the dimension of the vectors."""
        return int(self.exact.shape[1])

    @property
    def nbytes(self) -> int:
        """The memory on the device."""
        scales = 0 if self.row_scales is None else self.row_scales.nbytes
        return self.stored.nbytes + scales

    @torch.inference_mode()
    def scores(self, codes: CodeTensors, *, scale: float = 1.0) -> Tensor:
        """``[B, C]``: the scores of the rounded vectors, on the device.

        Args:
            codes: on the device; float32 codes are multiplied exactly.
            scale: multiplies the logits of the candidates' attention.
        """
        if codes.vectors.device.type != self.device.type:
            raise InputError(f"codes must be on {self.device} like the vectors, got {codes.vectors.device}")
        if codes.vectors.shape[-1] != self.width:
            raise InputError(f"codes must have {self.width} numbers, got {codes.vectors.shape[-1]}")
        if match_kind(self.device) == "triton":
            return self._kernel_scores(codes, scale)
        found = codes.vectors.new_empty(len(codes.vectors), len(self), dtype=torch.float32)
        for rows in self._blocks():
            part = self._restored(rows).to(torch.promote_types(codes.vectors.dtype, torch.float32))
            found[:, rows] = match(codes.vectors, part, mask=codes.mask, scale=scale)
        return found

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> SearchResult:
        """The ``k`` best candidates of each context, certified; ids are positions."""
        k = min(check_k(k), max(len(self), 1))
        check_scale("scale", scale)
        contexts = [vectors[mask] for vectors, mask in zip(codes.vectors, codes.mask, strict=True)]
        tops = [TopK(k) for _ in contexts]
        self.offer(np.arange(len(self)), contexts, tops, scale=scale)
        ids, scores = stack(tops, k)
        scored = np.array([top.scored for top in tops], dtype=np.int64)
        return SearchResult(ids, scores, (Certainty.CERTIFIED,) * len(contexts), scored)

    @torch.inference_mode()
    def offer(
        self,
        ids: Ints,
        contexts: Sequence[Floats],
        tops: Sequence[TopK],
        *,
        scale: float,
        alive: "Bools | None" = None,
    ) -> None:
        """Offer the vectors that can be among the best to the top-k of each context.

        Args:
            ids: ``[C]``, the ids under which vectors are offered.
            contexts: the codes ``[M, D]`` of each.
            alive: ``[C]``, false for vectors that are left out.
        """
        if not len(self):
            return
        dead = None if alive is None or alive.all() else torch.from_numpy(~alive).to(self.device)
        for some in _groups(len(contexts), len(self)):
            scores = self.scores(_stacked(contexts[some], self.device), scale=scale)
            if dead is not None:
                scores.masked_fill_(dead, -torch.inf)
            for row, codes, top in zip(scores, contexts[some], tops[some], strict=True):
                self._offer(ids, row, codes, top, scale=scale)

    def _offer(self, ids: Ints, scores: Tensor, codes: Floats, top: TopK, *, scale: float) -> None:
        """Score the vectors again that one context's scores ``[C]`` on the device do not rule out."""
        error = self._score_error(codes, scale)
        kth = scores.topk(top.k).values[-1] if top.k <= len(self) else scores.new_tensor(-torch.inf)
        threshold = torch.clamp(kth - 2 * error, min=top.threshold - error)
        near = ((scores >= threshold) & (scores > -torch.inf)).nonzero()[:, 0].cpu().numpy()
        for start in range(0, len(near), ROWS_AT_ONCE):
            rows = near[start : start + ROWS_AT_ONCE]
            top.offer(ids[rows], exact_scores(codes, self.exact[rows], scale))

    def _score_error(self, codes: Floats, scale: float) -> float:
        """Bound on the difference between a score on the device and that of the full vector."""
        largest = float(np.linalg.norm(codes, axis=1).max())
        rounding = relative_rounding_error(self.width) * self.max_norm
        product = largest * (self.error + rounding)
        spread = 2 * largest * (self.max_norm + self.error)
        growth = score_growth(len(codes), scale=scale, spread=spread)
        # sums of float32 over the codes, and exponentials of rounded logits
        of_sums = relative_rounding_error(len(codes) + 8) * largest * self.max_norm * (1 + growth)
        return product * growth + of_sums

    def _kernel_scores(self, codes: CodeTensors, scale: float) -> Tensor:
        from tercet.scorers.gpu.match import kernel_scores

        return kernel_scores(
            codes.vectors, self.stored, mask=codes.mask, scale=scale, row_scales=self.row_scales
        )

    def _blocks(self) -> Iterator[slice]:
        return (slice(start, start + ROWS_AT_ONCE) for start in range(0, len(self), ROWS_AT_ONCE))

    def _restored(self, rows: slice) -> Tensor:
        """``[n, D]``: rounded vectors in float32."""
        values = self.stored[rows].float()
        return values if self.row_scales is None else values * self.row_scales[rows].unsqueeze(1)

    def _store(self, rows: slice) -> None:
        """Round vectors, and measure by how much."""
        block = torch.from_numpy(np.array(self.exact[rows], dtype=np.float32)).to(self.device)
        if self.row_scales is not None:
            scales = block.abs().amax(dim=1) / MAX_INT8
            scales = torch.where(scales > 0, scales, 1.0)  # a zero vector needs some scale
            self.row_scales[rows] = scales
            self.stored[rows] = (block / scales.unsqueeze(1)).round_().to(torch.int8)
        else:
            self.stored[rows] = block.to(self.stored.dtype)
        restored = self._restored(rows)
        if not torch.isfinite(restored).all():
            raise InputError(
                f"numbers of these vectors exceed {self.storage}, which ends at "
                f"{torch.finfo(self.stored.dtype).max:,.0f}: use the storage bfloat16"
            )
        off = torch.linalg.vector_norm((block - restored).double(), dim=1).max()
        norms = [torch.linalg.vector_norm(each.double(), dim=1).max() for each in (block, restored)]
        self.error = max(self.error, float(off))
        self.max_norm = max(self.max_norm, *map(float, norms))


def _checked(vectors: Floats) -> Floats:
    """The vectors, if they are a finite array ``[C, D]``."""
    values: Any = np.asarray(vectors)
    if values.ndim != 2 or not values.shape[1]:
        raise InputError(f"vectors must have the shape [C, D], got {list(values.shape)}")
    if values.dtype != np.float32:
        raise InputError(f"vectors must be float32, got {values.dtype}")
    return finite_vectors(values)


def _check_memory(shape: tuple[int, ...], device: torch.device, storage: DeviceStorage) -> None:
    """Raise if a GPU has too little free memory for the vectors."""
    if device.type != "cuda":
        return
    free, _ = torch.cuda.mem_get_info(device)
    check_room(shape, free, storage, name=str(device))


def check_room(shape: tuple[int, ...], free: int, storage: DeviceStorage, *, name: str) -> None:
    """Raise if vectors of this shape do not fit into ``free`` bytes."""
    needed = shape[0] * (shape[1] * TYPES[storage].itemsize + (4 if storage == "int8" else 0))
    if needed + KEPT_FREE <= free:
        return
    smaller = "" if storage == "int8" else "the storage int8, "
    gigabytes = needed / 1e9
    raise DeviceMemoryError(
        f"{shape[0]:,} vectors of {shape[1]} numbers need {gigabytes:.1f} GB in {storage} and 1.1 GB beside "
        f"them, and {name} has {free / 1e9:.1f} GB free: use {smaller}fewer candidates, or a CPU"
    )


def _stacked(contexts: Sequence[Floats], device: torch.device) -> CodeTensors:
    """The codes of several contexts on the device, those of short ones padded."""
    most = max(map(len, contexts))
    vectors = np.zeros((len(contexts), most, contexts[0].shape[1]), dtype=np.float32)
    mask = np.zeros((len(contexts), most), dtype=np.bool_)
    for row, codes in enumerate(contexts):
        vectors[row, : len(codes)], mask[row, : len(codes)] = codes, True
    return CodeTensors(torch.from_numpy(vectors).to(device), torch.from_numpy(mask).to(device))


def _groups(contexts: int, candidates: int) -> Iterator[slice]:
    """Slices of contexts whose scores fit into memory together."""
    size = max(1, SCORES_AT_ONCE // max(candidates, 1))
    return (slice(start, start + size) for start in range(0, contexts, size))
