"""The vectors of a store at one moment; later changes of the store do not affect them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tercet.errors import BrokenIndexError
from tercet.index.approximate import ApproximateIndex
from tercet.index.base import SearchResult
from tercet.index.database import Database
from tercet.index.exact import ExactIndex
from tercet.index.faiss_index import read_index
from tercet.index.scan import Scan
from tercet.index.scoring import TopK, stack
from tercet.index.segment import Segment
from tercet.index.segment_files import SegmentFiles
from tercet.inputs import check_k
from tercet.records import Certainty, Codes, Ints
from tercet.settings.index import Storage

MIN_ALIVE = 0.5
"""Share of a graph's vectors that must be left. With fewer, recall drops, and the segment is scanned."""

CERTAINTIES = list(Certainty)


@dataclass(frozen=True)
class Snapshot:
    """An index of segments, and HNSW graphs over some of them, by the position of the segment."""

    index: ExactIndex
    graphs: Mapping[int, ApproximateIndex]

    def search(
        self,
        codes: Codes,
        k: int,
        *,
        scale: float = 1.0,
        exact: bool = False,
        subset: "Ints | None" = None,
    ) -> SearchResult:
        """The numbers of the ``k`` best candidates of each context.

        Args:
            exact: scan all vectors, even those with a graph.
            subset: search only these numbers, exactly.
        """
        if subset is not None:
            return self.index.subset(subset).search(codes, k, scale=scale)
        k = min(check_k(k), max(len(self.index), 1))
        graphs = {} if exact else self._usable_graphs()
        results = {position: graph.search(codes, k, scale=scale) for position, graph in graphs.items()}
        results = {at: result for at, result in results.items() if _is_full(result, graphs[at], k)}
        others = [segment for at, segment in enumerate(self.index.segments) if at not in results]
        scanned = ExactIndex(
            self.index.width, storage=self.index.storage, segments=others, scan=self.index.scan
        )
        return merge_results([scanned.search(codes, k, scale=scale), *results.values()], k)

    def _usable_graphs(self) -> dict[int, ApproximateIndex]:
        segments = self.index.segments
        return {at: graph for at, graph in self.graphs.items() if segments[at].alive.mean() >= MIN_ALIVE}


def read_snapshot(
    files: SegmentFiles, database: Database, *, width: int, storage: Storage, scan: Scan
) -> Snapshot:
    """The vectors of a store after its last transaction."""
    with database.transaction(write=False):
        loaded = files.load()
        removed = database.all_numbers("removed")
        numbers, buffered = database.buffered(width)
    segments = [segment.without(removed) for segment in loaded.values()]
    graphs = {
        position: open_graph(files.graph_file(name), segments[position])
        for position, name in enumerate(loaded)
    }
    if len(numbers):
        segments.append(Segment.of(numbers, buffered, storage))
    return Snapshot(
        ExactIndex(width, storage=storage, segments=segments, scan=scan),
        {position: graph for position, graph in graphs.items() if graph is not None},
    )


def open_graph(file: Path, segment: Segment) -> ApproximateIndex | None:
    """The graph of a segment; None if it is missing or broken, because a scan can replace it."""
    if not file.is_file():
        return None
    try:
        graph = read_index(file)
    except BrokenIndexError:
        return None
    return ApproximateIndex.over(segment, graph) if graph.ntotal == len(segment) else None


def merge_results(results: Sequence[SearchResult], k: int) -> SearchResult:
    """The best candidates of several results, as certain as the least certain of them."""
    if len(results) == 1:
        return results[0]
    tops = [TopK(k) for _ in results[0].certainty]
    for result in results:
        for top, ids, scores in zip(tops, result.ids, result.scores, strict=True):
            top.offer(ids[ids >= 0], scores[ids >= 0])
    ids, scores = stack(tops, k)
    by_context = zip(*(result.certainty for result in results), strict=True)
    certainty = tuple(max(levels, key=CERTAINTIES.index) for levels in by_context)
    return SearchResult(ids, scores, certainty, np.sum([result.scored for result in results], axis=0))


def _is_full(result: SearchResult, graph: ApproximateIndex, k: int) -> bool:
    """Whether a graph returned ``k`` candidates, or all that it has."""
    return bool((result.ids[:, : min(k, len(graph))] >= 0).all())
