"""The index that misses nothing: it looks at every vector, at the speed of memory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from tercet.errors import InputError
from tercet.files import new_folder, read_json, write_json
from tercet.index.base import Certainty, Found, Neighbours, VectorIndex
from tercet.index.scan import scan
from tercet.index.scoring import Best, joined
from tercet.index.segment import STORAGES, Segment, Storage, joined_segments
from tercet.inputs import check_choice
from tercet.records import Codes, Counts, Flags, Floats

ABOUT = "index.json"
CODES_AT_ONCE = 512
"""Contexts are scanned for together as long as they have no more codes than these."""


class ExactIndex(VectorIndex):
    """Every vector, in segments that do not change; what is removed is only marked.

    Args:
        storage: ``float32``; or ``bfloat16`` or ``int8``, which take half and a quarter of the memory and
            round the vectors: search is exact over the rounded ones.
    """

    exact = True

    def __init__(self, width: int, *, storage: Storage = "float32", segments: Sequence[Segment] = ()) -> None:
        check_choice("storage", storage, STORAGES)
        self.width = width
        self.storage: Storage = storage
        self.segments = list(segments)

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(segment.alive)) for segment in self.segments)

    @property
    def longest(self) -> float:
        """The length of the longest vector."""
        return max((segment.longest for segment in self.segments), default=0.0)

    def add(self, ids: Counts, vectors: Floats) -> None:
        """Put vectors ``[C, D]`` under new ids ``[C]``."""
        ids, vectors = self._checked(ids, vectors)
        known = self._owners(ids) >= 0
        if known.any():
            raise InputError(f"id {ids[known][0]} is there already: replace it, or remove it first")
        if len(ids):
            self.segments.append(Segment.of(ids, vectors, self.storage))
            self._merge_small()

    def remove(self, ids: Counts) -> None:
        """Take out vectors that are there."""
        ids = np.asarray(ids, dtype=np.int64)
        _check_there(ids, self._owners(ids) >= 0)
        for segment in self.segments:
            rows = segment.rows(ids)
            segment.alive[rows[rows >= 0]] = False
        self.segments = [segment for segment in self.segments if segment.alive.any()]

    def vectors(self, ids: Counts) -> Floats:
        """``[C, D]``: what is kept under ids."""
        ids = np.asarray(ids, dtype=np.int64)
        found = np.empty((len(ids), self.width), dtype=np.float32)
        there = np.zeros(len(ids), dtype=np.bool_)
        for segment in self.segments:
            rows = segment.rows(ids)
            here = rows >= 0
            found[here] = segment.vectors(rows[here])
            there |= here
        _check_there(ids, there)
        return found

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> Found:
        """The ``k`` best candidates of each context, proven."""
        self._check_codes(codes, k, scale)
        contexts = [vectors[mask] for vectors, mask in zip(codes.vectors, codes.mask, strict=True)]
        best = [Best(k) for _ in contexts]
        together = max(1, CODES_AT_ONCE // codes.mask.shape[1])
        for start in range(0, len(contexts), together):
            part = slice(start, start + together)
            for segment in self.segments:
                scan(segment, contexts[part], best[part], scale=scale)
        ids, scores = joined(best, k)
        proven: list[Certainty] = ["certified" for _ in contexts]
        return Found(ids, scores, tuple(proven), np.array([each.scored for each in best], dtype=np.int64))

    def nearest(self, queries: Floats, k: int) -> Neighbours:
        """The largest inner products of each vector of ``[Q, D]``."""
        found = self.search(Codes(queries[:, None], np.ones((len(queries), 1), dtype=np.bool_)), k)
        return Neighbours(found.ids, found.scores)

    def among(self, ids: Counts) -> "ExactIndex":
        """The same vectors, of which only some are found."""
        segments = [
            replace(segment, alive=segment.alive & np.isin(segment.ids, ids)) for segment in self.segments
        ]
        return ExactIndex(self.width, storage=self.storage, segments=segments)

    def save(self, path: Path) -> Path:
        """Write a new folder, without what was removed."""
        with new_folder(path) as partial:
            living = [segment.living() for segment in self.segments]
            for number, segment in enumerate(living):
                segment.save(partial / f"{number:06}")
            about = {"width": self.width, "storage": self.storage, "segments": len(living)}
            write_json(partial / ABOUT, about)
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """An index whose vectors are read from the folder when they are needed."""
        about = read_json(path / ABOUT)
        segments = [Segment.load(path / f"{number:06}") for number in range(about["segments"])]
        return cls(about["width"], storage=about["storage"], segments=segments)

    def _owners(self, ids: Counts) -> Counts:
        """``[C]``: which segment has an id, -1 for none."""
        owners = np.full(len(ids), -1, dtype=np.int64)
        for number, segment in enumerate(self.segments):
            owners[segment.rows(ids) >= 0] = number
        return owners

    def _merge_small(self) -> None:
        """Keep each segment at least twice as long as the next, so that there are never many."""
        while len(self.segments) > 1 and len(self.segments[-2]) < 2 * len(self.segments[-1]):
            last = self.segments[-2:]
            self.segments[-2:] = [joined_segments(last, self.storage)]


def _check_there(ids: Counts, there: Flags) -> None:
    if not there.all():
        raise InputError(f"there is no id {ids[~there][0]} in this index")
