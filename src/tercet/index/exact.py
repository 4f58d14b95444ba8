"""The exact index: it scans every vector and never misses one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from tercet.errors import InputError
from tercet.files.atomic import new_folder
from tercet.files.structured import read_json, write_json
from tercet.index.base import FORMAT, Neighbors, SearchResult, VectorIndex, check_format
from tercet.index.dtypes import STORAGES
from tercet.index.scan import Scan, scan
from tercet.index.scoring import TopK, stack
from tercet.index.segment import Segment, merge_segments
from tercet.inputs import check_choice
from tercet.records import Bools, Certainty, Codes, Floats, Ints
from tercet.settings.index import Storage

MANIFEST = "index.json"
CODES_PER_SCAN = 512
"""Contexts share a scan as long as they have no more codes than this together."""


class ExactIndex(VectorIndex):
    """All vectors in segments that never change; removed vectors are only marked.

    Args:
        storage: ``float32``, or ``bfloat16`` or ``int8``, which need half and a quarter of the memory. Those
            round the vectors; search is exact over the rounded ones.
        scan: searches one segment. Default: on the CPU.
        scan: searches one segment. Default: on the CPU.
    """

    exact = True

    def __init__(
        self,
        width: int,
        *,
        storage: Storage = "float32",
        segments: Sequence[Segment] = (),
        scan: Scan = scan,
    ) -> None:
        check_choice("storage", storage, tuple(STORAGES))
        self.scan = scan
        self.width = width
        self.storage: Storage = storage
        self.segments = list(segments)

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(segment.alive)) for segment in self.segments)

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector."""
        return max((segment.max_norm for segment in self.segments), default=0.0)

    def add(self, ids: Ints, vectors: Floats) -> None:
        """Add vectors ``[C, D]`` with new ids ``[C]``."""
        ids, vectors = self._check_input(ids, vectors)
        known = self._contains(ids)
        if known.any():
            raise InputError(f"id {ids[known][0]} exists already: replace it, or remove it first")
        if len(ids):
            self.segments.append(Segment.of(ids, vectors, self.storage))
            self._merge_small()

    def remove(self, ids: Ints) -> None:
        """Remove the vectors with these ids, which must exist."""
        ids = np.asarray(ids, dtype=np.int64)
        _check_known(ids, self._contains(ids))
        for segment in self.segments:
            rows = segment.rows(ids)
            segment.alive[rows[rows >= 0]] = False
        self.segments = [segment for segment in self.segments if segment.alive.any()]

    def vectors(self, ids: Ints) -> Floats:
        """``[C, D]``: the vectors with these ids."""
        ids = np.asarray(ids, dtype=np.int64)
        vectors = np.empty((len(ids), self.width), dtype=np.float32)
        known = np.zeros(len(ids), dtype=np.bool_)
        for segment in self.segments:
            rows = segment.rows(ids)
            here = rows >= 0
            vectors[here] = segment.vectors(rows[here])
            known |= here
        _check_known(ids, known)
        return vectors

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> SearchResult:
        """The ``k`` best candidates of each context, certified."""
        k = self._check_query(codes, k, scale)
        contexts = [vectors[mask] for vectors, mask in zip(codes.vectors, codes.mask, strict=True)]
        tops = [TopK(k) for _ in contexts]
        group = max(1, CODES_PER_SCAN // codes.mask.shape[1])
        for start in range(0, len(contexts), group):
            part = slice(start, start + group)
            for segment in self.segments:
                self.scan(segment, contexts[part], tops[part], scale=scale)
        ids, scores = stack(tops, k)
        scored = np.array([top.scored for top in tops], dtype=np.int64)
        return SearchResult(ids, scores, (Certainty.CERTIFIED,) * len(contexts), scored)

    def nearest(self, queries: Floats, k: int) -> Neighbors:
        """The ``k`` nearest neighbours of each query in ``[Q, D]``, by inner product."""
        result = self.search(Codes(queries[:, None], np.ones((len(queries), 1), dtype=np.bool_)), k)
        return Neighbors(result.ids, result.scores)

    def subset(self, ids: Ints) -> "ExactIndex":
        """An index over the same vectors that finds only these ids."""
        segments = [
            replace(segment, alive=segment.alive & np.isin(segment.ids, ids)) for segment in self.segments
        ]
        return ExactIndex(self.width, storage=self.storage, segments=segments, scan=self.scan)

    def save(self, path: Path) -> Path:
        """Write a new folder, without the vectors that were removed."""
        with new_folder(path) as partial:
            for number, segment in enumerate(self.segments):
                segment.compacted().save(partial / f"{number:06}")
            manifest = {"format": FORMAT, "width": self.width, "storage": self.storage}
            write_json(partial / MANIFEST, manifest | {"segments": len(self.segments)})
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """The index in a folder, with its vectors memory-mapped."""
        manifest = read_json(path / MANIFEST)
        check_format(path, manifest.get("format", 1))
        segments = [Segment.load(path / f"{number:06}") for number in range(manifest["segments"])]
        return cls(manifest["width"], storage=manifest["storage"], segments=segments)

    def _contains(self, ids: Ints) -> Bools:
        """``[C]``: whether each id exists."""
        known = np.zeros(len(ids), dtype=np.bool_)
        for segment in self.segments:
            known |= segment.rows(ids) >= 0
        return known

    def _merge_small(self) -> None:
        """Keep each segment at least twice as long as the next, so that there are only a few."""
        while len(self.segments) > 1 and len(self.segments[-2]) < 2 * len(self.segments[-1]):
            self.segments[-2:] = [merge_segments(self.segments[-2:], self.storage)]


def _check_known(ids: Ints, known: Bools) -> None:
    if not known.all():
        raise InputError(f"the index has no id {ids[~known][0]}: add it first")
