"""Retrieval from a corpus: by vectors or words, fused, and reranked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tercet.arrays import kth_largest
from tercet.data.retrieval import RetrievalSet
from tercet.errors import InputError
from tercet.evaluate.metrics import average_precision, gains_in_order, ndcg
from tercet.evaluate.results import Case, Rankings, Result, check_finite
from tercet.evaluate.significance import MeanOf
from tercet.evaluate.tasks.scoring import score_blocks, split_documents
from tercet.index.ranking import reciprocal_rank_fusion
from tercet.records import Floats, Ints
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.scorer import Scorer
from tercet.settings.chunks import ChunkConfig

DEPTH = 100
"""Documents of each ranking that MAP and recall count, and that are reranked by default."""


@dataclass(frozen=True)
class RetrievalTask:
    """Find the documents of a corpus that are relevant to a query."""

    name: str
    data: RetrievalSet
    all_queries: int | None = None
    """The number of queries of which ``data`` has a random sample; None: it has all."""
    notes: tuple[str, ...] = ()
    """What a reader of the results must know about the data."""
    depth: int = DEPTH
    """Documents that are kept of each ranking."""
    chunk: ChunkConfig | None = None
    """How documents are split into chunks. None: a model truncates those that are too long."""

    @property
    def size(self) -> str:
        """The number of queries, for titles."""
        count = len(self.data.queries)
        if self.all_queries is not None:
            return f"{count:,} of {self.all_queries:,} queries"
        return f"{count:,} {'query' if count == 1 else 'queries'}"

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return list(self.data.documents.values())

    def check(self, scorer: Scorer) -> None:
        """Raise if the scorer is a cross-encoder, which cannot score a corpus for every query."""
        if isinstance(scorer, CrossScorer):
            pairs = len(self.data.queries) * len(self.data.documents)
            raise InputError(
                f"{self.name}: a cross-encoder would score {pairs:,} pairs: retrieve with another model, and "
                "rerank its results with --reranker"
            )

    def run(self, scorer: Scorer, model: str) -> Result:
        """nDCG@10, MAP@100, R@100 and MRR@10 of exhaustive search."""
        return self.result(self.rankings(scorer), model)

    def rankings(self, scorer: Scorer) -> dict[str, dict[str, float]]:
        """The best documents of each query; every document is scored."""
        self.check(scorer)
        ids = list(self.data.documents)
        return {
            query: {ids[position]: float(row[position]) for position in self._top(query, row, ids)}
            for query, row in zip(self.data.queries, self._document_scores(scorer), strict=True)
        }

    def _document_scores(self, scorer: Scorer) -> Iterator[Floats]:
        """``[C]`` per query: the scores of all documents, in their order; the best chunk of each counts."""
        texts, starts = split_documents(scorer, list(self.data.documents.values()), self.chunk)
        for block in score_blocks(scorer, list(self.data.queries.values()), texts):
            yield from np.maximum.reduceat(block, starts, axis=1)

    def _pair_scores(self, scorer: Scorer, pairs: Sequence[tuple[str, str]]) -> Floats:
        """``[N]``: the score of each pair of a query and a document, given by their ids."""
        texts, starts = split_documents(scorer, [self.data.documents[name] for _, name in pairs], self.chunk)
        counts = np.diff(starts, append=len(texts))
        queries = [
            self.data.queries[query] for (query, _), n in zip(pairs, counts, strict=True) for _ in range(n)
        ]
        best: Floats = np.maximum.reduceat(scorer.score_pairs(queries, texts), starts)
        return best

    def _top(self, query: str, scores: Floats, ids: Sequence[str]) -> Ints:
        """Positions of the best documents; among equal scores, the least relevant come first."""
        check_finite(scores, f"query {query}")
        depth = min(self.depth, len(scores))
        among = np.flatnonzero(scores >= kth_largest(scores, depth))
        relevance = self.data.relevance[query]
        gains = np.array([relevance.get(ids[int(position)], 0.0) for position in among])
        order: Ints = among[np.lexsort((gains, -scores[among]))][:depth]
        return order

    def fused(self, rankings: Iterable[Rankings]) -> dict[str, dict[str, float]]:
        """The rankings of several scorers combined by reciprocal rank fusion."""
        several = list(rankings)
        ids = list(self.data.documents)
        position = {name: number for number, name in enumerate(ids)}

        def combined(query: str) -> dict[int, float]:
            numbered = [
                {position[name]: score for name, score in ranking[query].items()} for ranking in several
            ]
            return reciprocal_rank_fusion(numbered, self.depth)

        return {
            query: {ids[number]: gain for number, gain in combined(query).items()}
            for query in self.data.queries
        }

    def reranked(
        self, rankings: Rankings, scorer: Scorer, *, depth: int = DEPTH
    ) -> dict[str, dict[str, float]]:
        """Rankings whose first ``depth`` documents have the scores and the order of another scorer.

        The others follow in their order, each with a score that is lower by 1 than the one before.
        """
        pairs = [(query, name) for query, ranking in rankings.items() for name in islice(ranking, depth)]
        scores = self._pair_scores(scorer, pairs)
        check_finite(scores, "the reranker")
        scored: dict[str, dict[str, float]] = {query: {} for query in rankings}
        for (query, document), score in zip(pairs, scores, strict=True):
            scored[query][document] = float(score)
        return {query: _with_rest(ranking, rankings[query]) for query, ranking in scored.items()}

    def result(self, rankings: Rankings, model: str) -> Result:
        """The result of rankings."""
        rows = [self._metrics(query, rankings[query]) for query in self.data.queries]
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        queries = list(self.data.queries)
        return Result(
            self.name,
            model,
            {name: MeanOf(name) for name in columns},
            columns,
            1 - columns["nDCG@10"],
            lambda position: self._case(queries[position], rankings[queries[position]]),
            rankings=rankings,
        )

    def _metrics(self, query: str, ranking: Mapping[str, float]) -> dict[str, float]:
        relevance = self.data.relevance[query]
        gains = [relevance.get(name, 0.0) for name in ranking]
        ordered = gains_in_order(list(ranking.values()), gains)[:DEPTH]
        relevant = sum(value > 0 for value in relevance.values())
        first = int(np.argmax(ordered > 0)) + 1 if (ordered > 0).any() else 0
        return {
            "nDCG@10": ndcg(ordered, list(relevance.values()), k=10),
            f"MAP@{DEPTH}": average_precision(ordered, relevant),
            f"R@{DEPTH}": float(np.count_nonzero(ordered > 0) / relevant),
            "MRR@10": 1 / first if 0 < first <= 10 else 0.0,
        }

    def _case(self, query: str, ranking: Mapping[str, float]) -> Case:
        wanted = next(name for name, value in self.data.relevance[query].items() if value > 0)
        got = next(iter(ranking), "")
        return Case(
            self.data.queries[query],
            wanted=f"[{wanted}] {self.data.documents[wanted]}",
            got=f"[{got}] {self.data.documents.get(got, 'nothing')}",
        )


def _with_rest(scored: Mapping[str, float], ranking: Mapping[str, float]) -> dict[str, float]:
    """The scored documents, best first, and below them the others of a ranking in its order."""
    ordered = dict(sorted(scored.items(), key=lambda item: -item[1]))
    lowest = min(ordered.values(), default=0.0)
    rest = (name for name in ranking if name not in scored)
    return ordered | {name: lowest - number for number, name in enumerate(rest, start=1)}
