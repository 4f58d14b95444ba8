"""What bf16 and int8 cost in quality, compared with fp32 on the same runtime.

TERCET_DATA=FOLDER python benchmarks/precision_quality.py --model bi
"""

import argparse
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tercet
from tercet.evaluate.metrics import gains_in_order, ndcg, ranks, recall_at, spearman

TASKS = ("STSb", "KorSTS", "Ubuntu R@1", "SciFact nDCG@10")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bi")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16", "int8"])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument(
        "--cases", type=int, default=1500, help="cases of each task; SciFact has all its documents"
    )
    options = parser.parse_args()
    folder = Path(os.environ["TERCET_DATA"])
    measures: dict[str, Callable[[Any], float]] = {
        "STSb": lambda scorer: _similarity(scorer, folder / "stsb/dev.jsonl.gz", options.cases),
        "KorSTS": lambda scorer: _similarity(scorer, folder / "kor_sts/dev.jsonl.gz", options.cases),
        "Ubuntu R@1": lambda scorer: _choices(scorer, folder / "ubuntu_irc/dev_10.jsonl.gz", options.cases),
        "SciFact nDCG@10": lambda scorer: _retrieval(scorer, folder / "beir_scifact"),
    }
    scorers = {
        each: tercet.load(options.model, runtime="openvino", precision=each) for each in options.precisions
    }
    print(f"| {options.model} | " + " | ".join(scorers) + " |\n|---|" + "---:|" * len(scorers))
    for task in options.tasks:
        found = [100 * measures[task](scorer) for scorer in scorers.values()]
        print(f"| {task} | " + " | ".join(f"{value:.2f}" for value in found) + " |", flush=True)


def _similarity(scorer: Any, file: Path, cases: int) -> float:
    rows = [row for row, _ in zip(_rows(file), range(cases), strict=False)]
    scores = scorer.score_pairs([row["text_a"] for row in rows], [row["text_b"] for row in rows])
    return spearman(scores, [row["score"] for row in rows])


def _choices(scorer: Any, file: Path, cases: int) -> float:
    rows = [row for row, _ in zip(_rows(file), range(cases), strict=False)]
    contexts = [row["context"] for row in rows for _ in row["candidates"]]
    candidates = [text for row in rows for text in row["candidates"]]
    scores = scorer.score_pairs(contexts, candidates).reshape(len(rows), -1)
    return recall_at(ranks(scores, [row["label"] for row in rows]), 1)


def _retrieval(scorer: Any, folder: Path) -> float:
    documents = {
        str(row["_id"]): f"{row['title']} {row['text']}" for row in _rows(folder / "corpus.jsonl.gz")
    }
    queries = {str(row["_id"]): row["text"] for row in _rows(folder / "queries.jsonl.gz")}
    judged: dict[str, dict[str, float]] = {}
    for row in _rows(folder / "qrels_test.jsonl.gz"):
        judged.setdefault(str(row["query-id"]), {})[str(row["corpus-id"])] = row["score"]
    vectors = scorer.encode_candidates(list(documents.values()))
    scores = scorer.match(scorer.encode_contexts([queries[query] for query in judged]), vectors)
    found = []
    for row, relevant in zip(scores, judged.values(), strict=True):
        gains = np.array([relevant.get(document, 0.0) for document in documents])
        found.append(ndcg(gains_in_order(row, gains), gains, k=10))
    return float(np.mean(found))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
