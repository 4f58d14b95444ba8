"""The approximate index: faiss proposes candidates, which are then scored exactly."""

from math import sqrt
from pathlib import Path
from typing import Any, Self

import numpy as np

from tercet.files.atomic import new_folder
from tercet.files.structured import read_json, write_json
from tercet.index.base import FORMAT, NO_ID, Neighbors, SearchResult, VectorIndex, check_format
from tercet.index.certified import certified_search
from tercet.index.exact import ExactIndex
from tercet.index.faiss_index import (
    MAX_TRAINING,
    METHODS,
    MIN_TRAINING,
    Method,
    build_index,
    import_faiss,
    one_thread,
    read_index,
)
from tercet.index.segment import Segment
from tercet.inputs import check_choice, check_count
from tercet.records import Bools, Codes, Floats, Ints
from tercet.settings.index import Storage

FAISS_FILE, IDS_FILE, VECTORS, MANIFEST = "faiss.index", "ids.npy", "vectors", "approximate.json"
BUDGET = 20_000


class ApproximateIndex(VectorIndex):
    """An exact index, and a faiss index over 8-bit copies of its vectors.

    Args:
        method: ``hnsw`` (a graph) has the higher recall in the same time; ``ivf`` (inverted lists) builds in
            half the time.
        search_effort: how many vectors or lists faiss visits per code (efSearch, nprobe). The default reaches
            a recall of 98% on real sentences; it is lower per code if a context has many.
        budget: how many candidates of a context may be scored to prove its result.
    """

    exact = False

    def __init__(
        self,
        width: int,
        *,
        method: Method = "hnsw",
        search_effort: int | None = None,
        budget: int = BUDGET,
        storage: Storage = "float32",
    ) -> None:
        check_choice("method", method, tuple(METHODS))
        self.width = width
        self.method: Method = method
        self.search_effort = None if search_effort is None else check_count("search_effort", search_effort)
        self.budget = check_count("budget", budget)
        self._faiss: Any = import_faiss()
        self._exact = ExactIndex(width, storage=storage)
        self._index: Any = None
        """The faiss index; None while there are no vectors."""
        self._ids: Ints = np.empty(0, dtype=np.int64)
        """The id of each vector in the faiss index, from which nothing is ever removed."""
        self._alive: Bools = np.empty(0, dtype=np.bool_)
        """False for each vector in the faiss index that was removed."""
        self._mapped: Path | None = None
        """The file that the faiss index is memory-mapped from."""
        self._trained = 0
        """Number of vectors that the faiss index was trained on."""

    def __len__(self) -> int:
        return len(self._exact)

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector."""
        return self._exact.max_norm

    def add(self, ids: Ints, vectors: Floats) -> None:
        """Add vectors ``[C, D]`` with new ids ``[C]``."""
        ids, vectors = self._check_input(ids, vectors)
        self._exact.add(ids, vectors)
        if not len(ids):
            return
        if self._index is None or self._needs_training(len(ids)):
            self._build()
            return
        if self._mapped is not None:  # faiss cannot add to a memory-mapped index
            self._index, self._mapped = self._faiss.read_index(str(self._mapped)), None
        self._index.add(vectors)
        self._ids = np.concatenate([self._ids, ids])
        self._alive = np.concatenate([self._alive, np.ones(len(ids), dtype=np.bool_)])

    def remove(self, ids: Ints) -> None:
        """Remove the vectors with these ids, which must exist."""
        self._exact.remove(ids)
        self._alive = self._alive & ~np.isin(self._ids, ids)
        if 2 * len(self) < len(self._ids):
            self._build()

    def vectors(self, ids: Ints) -> Floats:
        """``[C, D]``: the vectors with these ids."""
        return self._exact.vectors(ids)

    def nearest(self, queries: Floats, k: int) -> Neighbors:
        """The approximate ``k`` nearest neighbours of each query in ``[Q, D]``, by inner product."""
        k = min(k, max(len(self), 1))
        if self._index is None:
            return Neighbors(*(np.full((len(queries), k), fill) for fill in (NO_ID, -np.inf)))
        alive = np.packbits(self._alive, bitorder="little")  # must outlive the search: faiss makes no copy
        selector = None if self._alive.all() else self._faiss.IDSelectorBitmap(alive)
        effort = self._effort(len(queries))
        parameters = METHODS[self.method].search_parameters(self._faiss, effort, k, selector)
        with one_thread(self._faiss):
            products, positions = self._index.search(
                np.ascontiguousarray(queries, dtype=np.float32), k, params=parameters
            )
        return Neighbors(np.where(positions >= 0, self._ids[positions], NO_ID), products)

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> SearchResult:
        """The ``k`` best candidates of each context, certified up to the recall of faiss."""
        k = self._check_query(codes, k, scale)
        return certified_search(self, codes, k, scale=scale, budget=max(self.budget, k))

    def save(self, path: Path) -> Path:
        """Write a new folder, without the vectors that were removed."""
        if not self._alive.all():
            self._build()
        with new_folder(path) as partial:
            self._exact.save(partial / VECTORS)
            if self._index is not None:
                self._faiss.write_index(self._index, str(partial / FAISS_FILE))
                np.save(partial / IDS_FILE, self._ids)
            settings = {"method": self.method, "search_effort": self.search_effort, "budget": self.budget}
            write_json(partial / MANIFEST, {"format": FORMAT, "width": self.width, "settings": settings})
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """The index in a folder, memory-mapped."""
        manifest = read_json(path / MANIFEST)
        check_format(path, manifest.get("format", 1))
        exact = ExactIndex.load(path / VECTORS)
        index = cls(manifest["width"], storage=exact.storage, **manifest["settings"])
        index._exact = exact
        if (path / FAISS_FILE).is_file():
            index._index, index._mapped = read_index(path / FAISS_FILE), path / FAISS_FILE
            index._ids = np.load(path / IDS_FILE, allow_pickle=False)
            index._alive = np.ones(len(index._ids), dtype=np.bool_)
            index._trained = len(index._ids)
        return index

    @classmethod
    def over(cls, segment: Segment, graph: Any) -> "ApproximateIndex":
        """An index over a segment, and an HNSW graph whose positions are the rows of the segment."""
        index = cls(segment.width, storage=segment.storage)
        index._exact = ExactIndex(index.width, storage=segment.storage, segments=[segment])
        index._ids, index._alive, index._index = segment.ids, segment.alive, graph
        return index

    def _effort(self, codes: int) -> int:
        """The search effort per code."""
        spec = METHODS[self.method]
        return self.search_effort or max(spec.min_search_effort, int(spec.search_effort / sqrt(codes)))

    def _needs_training(self, added: int) -> bool:
        """Whether ``added`` vectors make the training data of the faiss index too small a sample."""
        enough = max(4 * self._trained, MIN_TRAINING)
        return self._trained < MAX_TRAINING and len(self._ids) + added >= enough

    def _build(self) -> None:
        """Build the faiss index anew, without the vectors that were removed."""
        self._index, self._mapped, self._trained = None, None, len(self)
        self._ids, self._alive = np.empty(0, dtype=np.int64), np.ones(len(self), dtype=np.bool_)
        if not len(self):
            return
        rows = [(segment, np.flatnonzero(segment.alive)) for segment in self._exact.segments]
        self._ids = np.concatenate([segment.ids[alive] for segment, alive in rows])
        vectors = np.concatenate([segment.vectors(alive) for segment, alive in rows])
        self._index = build_index(vectors, self.method)
