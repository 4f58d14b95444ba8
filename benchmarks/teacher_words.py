"""What the words that two texts share add to a bi-encoder's cosine, before anything is trained.

TERCET_DATA=FOLDER python benchmarks/teacher_words.py

STSb's dev pairs, and BM25's best 100 for SciFact's training queries, scored by cosine + w times the share of
words (``teacher_words = w`` in a recipe). No test split is read.
"""

import gzip
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import tercet
from tercet.evaluate.baselines import Bm25
from tercet.evaluate.metrics import spearman
from tercet.training.word_shares import WordShares

WEIGHTS = (0, 0.1, 0.2, 0.3, 0.5, 1, 2)
DEPTH, CUT = 100, 10


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file."""
    with gzip.open(Path(os.environ["TERCET_DATA"]) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def similarity(scorer: Any) -> list[float]:
    """Spearman's rho x 100 on STSb dev, for each weight; words are as rare as in its training file."""
    shares = WordShares(text for row in rows("stsb/train") for text in (row["text_a"], row["text_b"]))
    pairs = rows("stsb/dev")
    left, right = [row["text_a"] for row in pairs], [row["text_b"] for row in pairs]
    cosines, common = scorer.score_pairs(left, right), shares.of_either(left, right)
    return [100 * spearman(cosines + weight * common, [row["score"] for row in pairs]) for weight in WEIGHTS]


def reranking(scorer: Any) -> list[float]:
    """nDCG@10 x 100 on SciFact's training queries, for each weight."""
    corpus = rows("beir_scifact/corpus")
    texts = [f"{row['title']} {row['text']}" for row in corpus]
    place = {row["_id"]: number for number, row in enumerate(corpus)}
    asked = {row["_id"]: row["text"] for row in rows("beir_scifact/queries")}
    relevant: dict[str, set[int]] = defaultdict(set)
    for row in rows("beir_scifact/qrels_train"):
        if row["score"] > 0:
            relevant[row["query-id"]].add(place[row["corpus-id"]])
    lexical, shares = Bm25(), WordShares(texts)
    lexical.fit(texts)
    queries = [asked[name] for name in relevant]
    best = np.argsort(-lexical.score_many(queries, texts), axis=1, kind="stable")[:, :DEPTH]
    cosines = scorer.score_many(queries, texts)
    found = np.zeros((len(queries), len(WEIGHTS)))
    for number, (query, right) in enumerate(zip(queries, relevant.values(), strict=True)):
        there = best[number]
        common = shares.of_pairs([query] * DEPTH, [texts[each] for each in there])
        for column, weight in enumerate(WEIGHTS):
            order = there[np.argsort(-(cosines[number, there] + weight * common), kind="stable")]
            found[number, column] = gain(order, right)
    return list(100 * found.mean(axis=0))


def gain(order: Any, right: set[int]) -> float:
    """nDCG@10 of texts that are relevant or not."""
    discounts = 1 / np.log2(np.arange(2, CUT + 2))
    hits = np.array([each in right for each in order[:CUT].tolist()])
    return float((hits * discounts).sum() / discounts[: min(len(right), CUT)].sum())


def main() -> None:
    scorer = tercet.load("bi")
    print("| w | " + " | ".join(map(str, WEIGHTS)) + " |")
    print("|---|" + "---:|" * len(WEIGHTS))
    for name, values in (("STSb dev", similarity(scorer)), ("SciFact, training queries", reranking(scorer))):
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |", flush=True)


if __name__ == "__main__":
    main()
