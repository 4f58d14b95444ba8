"""Search that looks at few vectors and may miss some: faiss finds candidates, they are scored exactly."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.errors import BrokenIndexError
from tercet.extras import require
from tercet.files import new_file, new_folder, read_json, write_json, writing
from tercet.index.base import Found, Neighbours, VectorIndex
from tercet.index.certified import certified_search
from tercet.index.exact import ExactIndex
from tercet.index.segment import Segment, Storage
from tercet.inputs import check_choice, check_count
from tercet.records import Codes, Counts, Flags, Floats

Method: TypeAlias = Literal["graph", "lists"]
METHODS: tuple[Method, ...] = get_args(Method)

FILE, VECTORS, ABOUT = "faiss.index", "vectors", "approximate.json"
GRAPH_LINKS, GRAPH_EFFORT_TO_BUILD = 16, 64
LEAST_TO_LEARN, MOST_TO_LEARN = 1000, 200_000
"""Vectors that quantisers and lists are learnt from."""
EFFORT: dict[Method, int] = {"graph": 256, "lists": 128}
"""Candidates that a graph keeps in view, or lists that are looked through, for a context of one code."""
LEAST_EFFORT: dict[Method, int] = {"graph": 32, "lists": 64}
"""The same for each of many codes: what one of them misses, another finds."""
ADDED_AT_ONCE = 50_000
BUDGET = 20_000
"""Candidates that may be scored for one context to prove its answer."""


class ApproximateIndex(VectorIndex):
    """Vectors in an exact index, and beside it a structure of faiss over their 8-bit copies.

    Args:
        method: ``graph`` (HNSW) or ``lists`` (IVF): a graph finds more in the same time, lists are built in
            half the time.
        effort: how much is looked at for one code, candidates in view of a graph, or lists; by default as
            much as real sentences need to find 98 of the best 100, less for each where codes are many.
        budget: how many candidates may be scored for a context in order to prove its answer.
    """

    exact = False

    def __init__(
        self,
        width: int,
        *,
        method: Method = "graph",
        effort: int | None = None,
        budget: int = BUDGET,
        storage: Storage = "float32",
    ) -> None:
        check_choice("method", method, METHODS)
        self.width = width
        self.method: Method = method
        self.effort = None if effort is None else check_count("effort", effort)
        self.budget = check_count("budget", budget)
        self._faiss: Any = require("faiss", extra="index", purpose="approximate search")
        self._exact = ExactIndex(width, storage=storage)
        self._ids = np.empty(0, dtype=np.int64)
        """Of each vector in faiss's structure, which never forgets one."""
        self._alive: Flags = np.empty(0, dtype=np.bool_)
        self._structure: Any = None
        self._mapped: Path | None = None
        self._learnt = 0

    def __len__(self) -> int:
        return len(self._exact)

    @property
    def longest(self) -> float:
        """The length of the longest vector."""
        return self._exact.longest

    def add(self, ids: Counts, vectors: Floats) -> None:
        """Put vectors ``[C, D]`` under new ids ``[C]``."""
        ids, vectors = self._checked(ids, vectors)
        self._exact.add(ids, vectors)
        if not len(ids):
            return
        if self._structure is None or self._outgrown(len(ids)):
            self._build()
            return
        if self._mapped is not None:  # faiss cannot add to what is mapped from a file
            self._structure, self._mapped = self._faiss.read_index(str(self._mapped)), None
        self._structure.add(vectors)
        self._ids = np.concatenate([self._ids, ids])
        self._alive = np.concatenate([self._alive, np.ones(len(ids), dtype=np.bool_)])

    def remove(self, ids: Counts) -> None:
        """Take out vectors that are there."""
        self._exact.remove(ids)
        self._alive = self._alive & ~np.isin(self._ids, ids)
        if 2 * len(self) < len(self._ids):
            self._build()

    def vectors(self, ids: Counts) -> Floats:
        """``[C, D]``: what is kept under ids."""
        return self._exact.vectors(ids)

    def nearest(self, queries: Floats, k: int) -> Neighbours:
        """About the largest inner products of each vector of ``[Q, D]``."""
        if self._structure is None:
            return Neighbours(*(np.full((len(queries), k), fill) for fill in (-1, -np.inf)))
        bits = np.packbits(self._alive, bitorder="little")  # faiss keeps no copy
        parameters = self._parameters(len(queries), k, bits)
        with one_thread(self._faiss):
            products, places = self._structure.search(
                np.ascontiguousarray(queries, dtype=np.float32), k, params=parameters
            )
        return Neighbours(np.where(places >= 0, self._ids[places], -1), products)

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> Found:
        """The ``k`` best candidates of each context, proven up to what faiss may have missed."""
        self._check_codes(codes, k, scale)
        return certified_search(self, codes, k, scale=scale, budget=max(self.budget, k))

    def save(self, path: Path) -> Path:
        """Write a new folder."""
        if not self._alive.all():
            self._build()
        with new_folder(path) as partial:
            self._exact.save(partial / VECTORS)
            if self._structure is not None:
                self._faiss.write_index(self._structure, str(partial / FILE))
                np.save(partial / "ids.npy", self._ids)
            about = {"width": self.width, "method": self.method, "effort": self.effort, "budget": self.budget}
            write_json(partial / ABOUT, about)
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """An index whose files are mapped into memory."""
        about = read_json(path / ABOUT)
        exact = ExactIndex.load(path / VECTORS)
        index = cls(**about, storage=exact.storage)
        index._exact = exact
        if (path / FILE).is_file():
            index._structure, index._mapped = read_structure(index._faiss, path / FILE), path / FILE
            index._ids = np.load(path / "ids.npy", allow_pickle=False)
            index._alive = np.ones(len(index._ids), dtype=np.bool_)
            index._learnt = len(index._ids)
        return index

    @classmethod
    def over(cls, segment: Segment, structure: Any) -> "ApproximateIndex":
        """An index over the vectors of a segment, whose rows are the places of a graph that is there."""
        index = cls(segment.sketch.values.shape[1], storage=segment.storage)
        index._exact = ExactIndex(index.width, storage=segment.storage, segments=[segment])
        index._ids, index._alive, index._structure = segment.ids, segment.alive, structure
        return index

    def _parameters(self, codes: int, k: int, bits: NDArray[np.uint8]) -> Any:
        effort = self.effort or max(LEAST_EFFORT[self.method], int(EFFORT[self.method] / sqrt(codes)))
        more = {} if self._alive.all() else {"sel": self._faiss.IDSelectorBitmap(bits)}
        if self.method == "graph":
            return self._faiss.SearchParametersHNSW(efSearch=max(effort, k), **more)
        return self._faiss.SearchParametersIVF(nprobe=effort, **more)

    def _outgrown(self, more: int) -> bool:
        """Whether so much comes that what was learnt of the vectors before is too little."""
        return self._learnt < MOST_TO_LEARN and len(self._ids) + more >= max(4 * self._learnt, LEAST_TO_LEARN)

    def _build(self) -> None:
        if not len(self):
            self._ids, self._alive = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
            self._structure, self._mapped, self._learnt = None, None, 0
            return
        segments = [(segment, np.flatnonzero(segment.alive)) for segment in self._exact.segments]
        self._ids = np.concatenate([segment.ids[rows] for segment, rows in segments])
        self._alive = np.ones(len(self._ids), dtype=np.bool_)
        self._mapped = None
        self._structure = empty_structure(self._faiss, self.width, self.method, len(self._ids))
        vectors = np.concatenate([segment.vectors(rows) for segment, rows in segments])
        fill(self._structure, vectors)
        self._learnt = len(vectors)


def build_graph(vectors: Floats, file: Path) -> None:
    """Write the graph of vectors ``[N, D]`` to a new file."""
    faiss: Any = require("faiss", extra="index", purpose="approximate search")
    graph = empty_structure(faiss, vectors.shape[1], "graph", len(vectors))
    fill(graph, vectors)
    with new_file(file, overwrite=True) as partial, writing(file):
        faiss.write_index(graph, str(partial))


def fill(structure: Any, vectors: Floats) -> None:
    """Put vectors ``[N, D]`` into an empty structure, a part at a time: they may lie in a mapped file."""
    structure.train(np.ascontiguousarray(vectors[:: max(1, len(vectors) // MOST_TO_LEARN)]))
    for start in range(0, len(vectors), ADDED_AT_ONCE):
        structure.add(np.ascontiguousarray(vectors[start : start + ADDED_AT_ONCE]))


def empty_structure(faiss: Any, width: int, method: Method, count: int) -> Any:
    """What suits so many vectors: full numbers for few, which teach no quantiser, and 8 bits for more."""
    numbers = "Flat" if count < LEAST_TO_LEARN else "SQ8"
    if method == "graph":
        made = faiss.index_factory(width, f"HNSW{GRAPH_LINKS},{numbers}", faiss.METRIC_INNER_PRODUCT)
        made.hnsw.efConstruction = GRAPH_EFFORT_TO_BUILD
        return made
    lists = max(1, min(int(4 * sqrt(count)), count // 39))  # faiss wants 39 vectors to learn a list
    return faiss.index_factory(width, f"IVF{lists},{numbers}", faiss.METRIC_INNER_PRODUCT)


def read_structure(faiss: Any, file: Path) -> Any:
    """faiss's structure, mapped into memory."""
    try:
        return faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise BrokenIndexError(f"{file} is not whole ({error}): run tercet index repair") from None


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """Search in this thread alone: a search is so short that a second one would wait longer than it works."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
