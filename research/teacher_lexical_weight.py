"""Measure what lexical overlap adds to a bi-encoder's cosine as a teacher, before anything is trained.

TERCET_DATA=FOLDER python research/teacher_lexical_weight.py

The dev pairs of STSb, and BM25's best 100 for the training queries of SciFact, are scored by the cosine plus
w times the lexical overlap (``teacher_lexical_weight = w`` in a recipe). No test split is used.
"""

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tercet
from tercet.evaluate.baselines import BM25
from tercet.evaluate.metrics import spearman
from tercet.training.lexical_overlap import LexicalOverlap

WEIGHTS = (0, 0.1, 0.2, 0.3, 0.5, 1, 2)
DEPTH, CUTOFF = 100, 10


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a data file."""
    with gzip.open(Path(os.environ["TERCET_DATA"]) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def similarity(scorer: tercet.Scorer) -> list[float]:
    """Spearman's ρ x 100 on STSb dev for each weight; idf comes from the training file."""
    overlap = LexicalOverlap(text for row in rows("stsb/train") for text in (row["text_a"], row["text_b"]))
    pairs = rows("stsb/dev")
    left, right = [row["text_a"] for row in pairs], [row["text_b"] for row in pairs]
    cosines, shares = scorer.score_pairs(left, right), overlap.of_both(left, right)
    return [100 * spearman(cosines + weight * shares, [row["score"] for row in pairs]) for weight in WEIGHTS]


def reranking(scorer: tercet.Scorer) -> list[float]:
    """nDCG@10 x 100 on the training queries of SciFact for each weight."""
    corpus = rows("beir_scifact/corpus")
    texts = [f"{row['title']} {row['text']}" for row in corpus]
    relevant = _relevant({row["_id"]: position for position, row in enumerate(corpus)})
    text_of = {row["_id"]: row["text"] for row in rows("beir_scifact/queries")}
    queries = [text_of[query] for query in relevant]
    bm25, overlap = BM25(), LexicalOverlap(texts)
    bm25.fit(texts)
    top = np.argsort(-bm25.score_many(queries, texts), axis=1, kind="stable")[:, :DEPTH]
    cosines = scorer.score_many(queries, texts)
    gains = np.zeros((len(queries), len(WEIGHTS)))
    for number, (query, right) in enumerate(zip(queries, relevant.values(), strict=True)):
        candidates = top[number]
        shares = overlap.of_contexts([query] * DEPTH, [texts[position] for position in candidates])
        for column, weight in enumerate(WEIGHTS):
            scores = cosines[number, candidates] + weight * shares
            gains[number, column] = ndcg(candidates[np.argsort(-scores, kind="stable")].tolist(), right)
    return list(100 * gains.mean(axis=0))


def ndcg(ranking: Sequence[int], relevant: set[int]) -> float:
    """nDCG@10 with binary relevance."""
    discounts = 1 / np.log2(np.arange(2, CUTOFF + 2))
    hits = np.array([position in relevant for position in ranking[:CUTOFF]])
    return float((hits * discounts).sum() / discounts[: min(len(relevant), CUTOFF)].sum())


def _relevant(position: dict[str, int]) -> dict[str, set[int]]:
    """Positions of the relevant documents in the corpus, by query id."""
    relevant: dict[str, set[int]] = defaultdict(set)
    for row in rows("beir_scifact/qrels_train"):
        if row["score"] > 0:
            relevant[row["query-id"]].add(position[row["corpus-id"]])
    return relevant


def main() -> None:
    scorer = tercet.load("bi")
    print("| w | " + " | ".join(map(str, WEIGHTS)) + " |")
    print("|---|" + "---:|" * len(WEIGHTS))
    for name, values in (("STSb dev", similarity(scorer)), ("SciFact, training queries", reranking(scorer))):
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |", flush=True)


if __name__ == "__main__":
    main()
