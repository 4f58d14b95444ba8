"""The vectors of a store at one moment: whatever is written later does not change what a search sees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tercet.errors import BrokenIndexError
from tercet.extras import require
from tercet.index.approximate import ApproximateIndex, read_structure
from tercet.index.base import CERTAINTIES, Found
from tercet.index.exact import ExactIndex
from tercet.index.scoring import Best, joined
from tercet.index.segment import Segment
from tercet.records import Codes, Counts

FEWEST_ALIVE = 0.5
"""Of a graph's candidates; with more of them removed, its paths lead nowhere, and all are looked at."""


@dataclass(frozen=True)
class Snapshot:
    """Segments, and graphs over some of them, by their places."""

    index: ExactIndex
    graphs: Mapping[int, ApproximateIndex]

    def search(
        self,
        codes: Codes,
        k: int,
        *,
        scale: float = 1.0,
        exact: bool = False,
        among: "Counts | None" = None,
    ) -> Found:
        """The numbers of the ``k`` best candidates of each context.

        Args:
            exact: look at every vector, even where there is a graph.
            among: look only at these numbers, and at each of them.
        """
        if among is not None:
            return self.index.among(among).search(codes, k, scale=scale)
        graphs = {} if exact else self._usable()
        found = {place: graph.search(codes, k, scale=scale) for place, graph in graphs.items()}
        found = {place: each for place, each in found.items() if _is_full(each, graphs[place], k)}
        scanned = [segment for place, segment in enumerate(self.index.segments) if place not in found]
        rest = ExactIndex(self.index.width, storage=self.index.storage, segments=scanned)
        return merged([rest.search(codes, k, scale=scale), *found.values()], k)

    def _usable(self) -> dict[int, ApproximateIndex]:
        alive = {place: self.index.segments[place].alive for place in self.graphs}
        return {place: self.graphs[place] for place, flags in alive.items() if flags.mean() >= FEWEST_ALIVE}


def open_graph(file: Path, segment: Segment) -> ApproximateIndex | None:
    """The graph beside a segment; none if there is none or it is broken: all can be scanned as well."""
    if not file.is_file():
        return None
    try:
        structure = read_structure(require("faiss", extra="index", purpose="search in a graph"), file)
    except BrokenIndexError:
        return None
    return ApproximateIndex.over(segment, structure) if structure.ntotal == len(segment) else None


def without(segment: Segment, numbers: Counts) -> Segment:
    """The same vectors, some of them marked as removed."""
    rows = segment.rows(numbers)
    alive = segment.alive.copy()
    alive[rows[rows >= 0]] = False
    return replace(segment, alive=alive)


def merged(found: Sequence[Found], k: int) -> Found:
    """The best of what was found in several places; it is as certain as the least certain of them."""
    if len(found) == 1:
        return found[0]
    best = [Best(k) for _ in found[0].certainty]
    for part in found:
        for each, ids, scores in zip(best, part.ids, part.scores, strict=True):
            each.offer(ids[ids >= 0], scores[ids >= 0])
    ids, scores = joined(best, k)
    certainty = [max(said, key=CERTAINTIES.index) for said in zip(*(p.certainty for p in found), strict=True)]
    return Found(ids, scores, tuple(certainty), np.sum([part.scored for part in found], axis=0))


def _is_full(found: Found, graph: ApproximateIndex, k: int) -> bool:
    """Whether a graph gave as many candidates as it has, up to ``k``."""
    return bool((found.ids[:, : min(k, len(graph))] >= 0).all())
