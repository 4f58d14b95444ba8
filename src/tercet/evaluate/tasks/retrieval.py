"""Retrieval over a corpus, by vectors, by words, by both, and read again by a cross-encoder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.data.retrieval import Judged
from tercet.errors import InputError
from tercet.evaluate.metrics import average_precision, gains_in_order, ndcg
from tercet.evaluate.results import Case, Result, check_scores
from tercet.evaluate.significance import MeanOf
from tercet.evaluate.tasks.scoring import score_blocks
from tercet.models.cross import CrossEncoder
from tercet.models.scorer import Scorer
from tercet.records import Counts, Floats
from tercet.retrieve import fused

DEPTH = 100
"""So many texts are kept of each ranking."""


@dataclass(frozen=True)
class RetrievalTask:
    """Which texts of a corpus answer a query."""

    name: str
    judged: Judged

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return list(self.judged.texts.values())

    def check(self, scorer: Scorer) -> None:
        """A cross-encoder cannot read a corpus for every query."""
        if isinstance(scorer, CrossEncoder):
            pairs = len(self.judged.queries) * len(self.judged.texts)
            raise InputError(
                f"{self.name}: a cross-encoder would read {pairs:,} pairs: let another model find the texts, "
                "and read them again with --rerank"
            )

    def run(self, scorer: Scorer, model: str) -> Result:
        """nDCG@10, MAP@100, R@100 and MRR@10 of the texts that score highest."""
        return self.result(self.rankings(scorer), model)

    def rankings(self, scorer: Scorer) -> dict[str, dict[str, float]]:
        """For each query, the keys of the best texts with their scores, best first; every text is scored."""
        self.check(scorer)
        keys, texts = list(self.judged.texts), list(self.judged.texts.values())
        blocks = score_blocks(scorer, list(self.judged.queries.values()), texts)
        rows = (row for block in blocks for row in block)
        return {
            query: {keys[place]: float(row[place]) for place in self._best(query, row, keys)}
            for query, row in zip(self.judged.queries, rows, strict=True)
        }

    def _best(self, query: str, scores: Floats, keys: Sequence[str]) -> Counts:
        """Places of the best texts; where equal scores meet the end of the list, right texts are left out."""
        check_scores(scores, f"query {query}")
        depth = min(DEPTH, len(scores))
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        among = np.flatnonzero(scores >= least)
        grades = self.judged.grades[query]
        gains = np.array([grades.get(keys[int(place)], 0.0) for place in among])
        order: Counts = among[np.lexsort((gains, -scores[among]))][:depth]
        return order

    def fused(self, rankings: Iterable[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
        """Rankings of several scorers made one (reciprocal rank fusion)."""
        keys = {key: number for number, key in enumerate(self.judged.texts)}
        names = list(keys)
        several = list(rankings)
        return {
            query: {
                names[number]: gain
                for number, gain in fused(
                    [{keys[key]: score for key, score in each[query].items()} for each in several], DEPTH
                ).items()
            }
            for query in self.judged.queries
        }

    def reranked(
        self, rankings: Mapping[str, Mapping[str, float]], scorer: Scorer
    ) -> dict[str, dict[str, float]]:
        """The texts of rankings in the order of another scorer."""
        found = [(query, key) for query, ranking in rankings.items() for key in ranking]
        scores = scorer.score_pairs(
            [self.judged.queries[query] for query, _ in found], [self.judged.texts[key] for _, key in found]
        )
        check_scores(scores, "the model that reads again")
        again: dict[str, dict[str, float]] = {query: {} for query in rankings}
        for (query, key), score in zip(found, scores, strict=True):
            again[query][key] = float(score)
        return {
            query: dict(sorted(ranking.items(), key=lambda item: -item[1]))
            for query, ranking in again.items()
        }

    def result(self, rankings: Mapping[str, Mapping[str, float]], model: str) -> Result:
        """Measures of rankings."""
        rows = [self._measured(query, rankings[query]) for query in self.judged.queries]
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        queries = list(self.judged.queries)
        return Result(
            self.name,
            model,
            {name: MeanOf(name) for name in columns},
            columns,
            1 - columns["nDCG@10"],
            lambda place: self._case(queries[place], rankings[queries[place]]),
            runs=rankings,
        )

    def _measured(self, query: str, ranking: Mapping[str, float]) -> dict[str, float]:
        grades = self.judged.grades[query]
        ordered = gains_in_order(list(ranking.values()), [grades.get(key, 0.0) for key in ranking])
        relevant = sum(grade > 0 for grade in grades.values())
        first = int(np.argmax(ordered > 0)) + 1 if (ordered > 0).any() else 0
        return {
            "nDCG@10": ndcg(ordered, list(grades.values()), k=10),
            f"MAP@{DEPTH}": average_precision(ordered, relevant),
            f"R@{DEPTH}": float(np.count_nonzero(ordered > 0) / relevant),
            "MRR@10": 1 / first if 0 < first <= 10 else 0.0,
        }

    def _case(self, query: str, ranking: Mapping[str, float]) -> Case:
        grades = self.judged.grades[query]
        wanted = next(key for key, grade in grades.items() if grade > 0)
        got = next(iter(ranking), "")
        return Case(
            self.judged.queries[query],
            wanted=f"[{wanted}] {self.judged.texts[wanted]}",
            got=f"[{got}] {self.judged.texts.get(got, 'nothing')}",
        )
