"""Rankings of candidates by number: from the best vectors, and fused from several searches."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tercet.index.base import SearchResult
from tercet.index.owners import Owner
from tercet.records import Certainty, Floats, Ints, Part

RANK_OFFSET = 60
"""Constant of reciprocal rank fusion (Cormack et al., 2009)."""

OwnersOf: TypeAlias = Callable[[Ints], Mapping[int, Owner]]
"""The candidates of vectors, by number; unknown vectors are left out."""


class Ranking(NamedTuple):
    """Scores by the numbers of candidates, best first, how certain they are, and the best parts."""

    scores: dict[int, float]
    certainty: Certainty
    parts: dict[int, Part | None]


def rank_candidates(
    search: Callable[[int], SearchResult], owners: OwnersOf, k: int, *, total: int
) -> list[Ranking]:
    """The best ``k`` candidates of each context by their best vectors.

    Several vectors of one candidate can be among the best, so the search goes deeper until there are ``k``
    candidates. The first vectors in order then contain the best one of each.

    Args:
        search: finds a number of vectors.
        total: how many vectors there are, or more.
    """
    total = max(total, 1)
    depth = min(k, total)
    while True:
        result = search(depth)
        rows = zip(result.ids, result.scores, result.certainty, strict=True)
        rankings = [_by_candidate(*row, owners, k) for row in rows]
        ended = result.ids[:, -1] < 0  # there are no more vectors
        full = [len(one.scores) == k for one in rankings]
        if depth == total or all(ended | full):
            return rankings
        depth = min(2 * depth, total)


def _by_candidate(ids: Ints, scores: Floats, certainty: Certainty, owners: OwnersOf, k: int) -> Ranking:
    """The first ``k`` candidates of vectors in order; a vector that was just removed counts as one."""
    found = ids[ids >= 0]
    of = owners(found)
    ranking = Ranking({}, certainty, {})
    for number, score in zip(found.tolist(), scores.tolist(), strict=False):
        owner = of.get(number, Owner(-1 - number, None))
        if owner.candidate not in ranking.scores and len(ranking.scores) < k:
            ranking.scores[owner.candidate] = score
            ranking.parts[owner.candidate] = owner.part
    return ranking


def reciprocal_rank_fusion(rankings: Sequence[Mapping[int, float]], k: int) -> dict[int, float]:
    """The ``k`` best candidates of several rankings, by the sum of 1 / (60 + rank) over the rankings.

    Args:
        rankings: scores by candidate, best first; only the order counts.
    """
    fused: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            fused[number] = fused.get(number, 0.0) + 1 / (RANK_OFFSET + rank)
    return dict(sorted(fused.items(), key=lambda entry: (-entry[1], entry[0]))[:k])
