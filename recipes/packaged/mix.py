"""Interpolate between a base model and a trained one, and save the best mixture with 2-bit weights.

python recipes/packaged/mix.py RECIPE MODEL -o OUT --data FOLDER

A model trained on dialogues forgets part of what its base model knew about questions, answers and long texts.
This script mixes the weights of the base model (share 0) and of the trained model (share 1), evaluates
several shares, and keeps the one with the highest mean of five metrics. RECIPE is the recipe that MODEL was
trained with.

replies     R@1 on packaged/replies_dev (created by data.py)
stsb        Spearman correlation on the dev data of STSb
scifact     nDCG@10 of 200 training queries of SciFact, when the top 50 of BM25 are reranked
faq         R@1 of tercet's sample questions among all answers
dialogues   R@1 of tercet's sample dialogues among all last turns

FOLDER contains packaged (created by data.py), stsb and beir_scifact. BM25 needs the extra tercet[lexical].
"""

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tercet
from tercet.data.sample import dialogues, questions
from tercet.evaluate.metrics import gains_in_order, ndcg, ranks, recall_at, spearman
from tercet.files.atomic import check_free
from tercet.formats.delta import check_comparable, save_delta
from tercet.formats.from_spec import make_scorer
from tercet.index.lexical import LexicalIndex
from tercet.scorers.kinds import AnyScorer
from tercet.settings.models import ModelSpec
from tercet.settings.recipe import read_recipe

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
CHOICES = 1500
QUERIES, RERANKED, DEPTH = 200, 50, 10

Metric = Callable[[AnyScorer], float]


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def metrics(folder: Path) -> dict[str, Metric]:
    """The five metrics by name."""
    replies = list(rows(folder, "packaged/replies_dev"))[:CHOICES]
    pairs = list(rows(folder, "stsb/dev"))
    faq, samples = questions("en"), dialogues("en")
    answers = [question.context for question in faq], [question.answer for question in faq]
    turns = [dialogue.turns[:-1] for dialogue in samples], [dialogue.turns[-1] for dialogue in samples]
    return {
        "replies": partial(recall_of_choices, replies),
        "stsb": partial(correlation, pairs),
        "scifact": partial(ndcg_of_queries, list(bm25_results(folder / "beir_scifact"))),
        "faq": partial(recall_among_all, *answers),
        "dialogues": partial(recall_among_all, *turns),
    }


def recall_of_choices(cases: Sequence[dict[str, Any]], scorer: AnyScorer) -> float:
    """R@1 where each context has its own candidates; ``label`` is the index of the right one."""
    return fmean(
        recall_at(ranks(scores[None], [case["label"]]), 1)
        for case, scores in zip(cases, scores_of(cases, scorer), strict=True)
    )


def ndcg_of_queries(cases: Sequence[dict[str, Any]], scorer: AnyScorer) -> float:
    """nDCG@10 of reranked texts; ``all_gains`` includes relevant texts that BM25 did not find."""
    return fmean(
        ndcg(gains_in_order(scores, case["gains"]), case["all_gains"], k=DEPTH)
        for case, scores in zip(cases, scores_of(cases, scorer), strict=True)
    )


def correlation(pairs: Sequence[dict[str, Any]], scorer: AnyScorer) -> float:
    """Spearman correlation with the gold scores."""
    scores = scorer.score_pairs([pair["text_a"] for pair in pairs], [pair["text_b"] for pair in pairs])
    return spearman(scores, [pair["score"] for pair in pairs])


def recall_among_all(contexts: Sequence[Any], answers: Sequence[str], scorer: AnyScorer) -> float:
    """R@1 where the answers of all contexts are the candidates."""
    return recall_at(ranks(scorer.score_many(contexts, answers), range(len(contexts))), 1)


def scores_of(cases: Sequence[dict[str, Any]], scorer: AnyScorer) -> list[NDArray[Any]]:
    """The scores of each context's own candidates."""
    contexts = [case["context"] for case in cases for _ in case["candidates"]]
    candidates = [text for case in cases for text in case["candidates"]]
    ends = np.cumsum([len(case["candidates"]) for case in cases])
    return np.split(scorer.score_pairs(contexts, candidates), ends[:-1])


def bm25_results(folder: Path) -> Iterator[dict[str, Any]]:
    """Random training queries of a retrieval data set, each with the top texts of BM25 and their gains."""
    texts = {row["_id"]: f"{row['title']}\n{row['text']}" for row in rows(folder, "corpus")}
    queries = {row["_id"]: row["text"] for row in rows(folder, "queries")}
    relevant: dict[str, dict[str, float]] = {}
    for row in rows(folder, "qrels_train"):
        relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    ids = list(texts)
    with tempfile.TemporaryDirectory() as created:
        index = LexicalIndex(Path(created))
        index.add(np.arange(len(ids)), texts.values())
        for query in random.Random(0).sample(sorted(relevant), QUERIES):
            found = [ids[position] for position, _ in index.search(queries[query], RERANKED)]
            yield {
                "context": queries[query],
                "candidates": [texts[each] for each in found],
                "gains": [relevant[query].get(each, 0) for each in found],
                "all_gains": list(relevant[query].values()),
            }


@torch.no_grad()
def mixed(base: ModelSpec, trained: AnyScorer, share: float) -> AnyScorer:
    """The model with the weights (1 - share) * base + share * trained."""
    scorer = make_scorer(base, device="cpu")
    ends = dict(trained.named_parameters())
    for name, weight in scorer.named_parameters():
        weight.lerp_(ends[name], share)
    return scorer


def best_share(base: ModelSpec, trained: AnyScorer, shares: Sequence[float], data: Path) -> float:
    """The share with the highest mean of the metrics, measured after quantization."""
    measured = metrics(data)
    means: dict[float, float] = {}
    with tempfile.TemporaryDirectory() as created:
        for share in shares:
            folder = save_delta(mixed(base, trained, share), base, Path(created) / str(share), bits=2)
            scorer = tercet.load(folder)
            values = {name: 100 * metric(scorer) for name, metric in measured.items()}
            means[share] = fmean(values.values())
            rounded = {name: round(value, 1) for name, value in values.items()}
            print(f"{share}: {means[share]:.1f}", rounded, flush=True)
    return max(means, key=means.__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", type=Path, help="the recipe that MODEL was trained with")
    parser.add_argument("model", type=Path, help="folder of the trained model")
    parser.add_argument("-o", "--out", type=Path, required=True, help="output folder")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="shares to evaluate")
    options = parser.parse_args()
    check_free(options.out)
    base, trained = read_recipe(options.recipe).model, tercet.load(options.model, device="cpu")
    check_comparable(trained, make_scorer(base, device="cpu"))
    share = best_share(base, trained, options.shares, options.data)
    save_delta(mixed(base, trained, share), base, options.out, bits=2)
    print(f"{options.out}: share {share}")


if __name__ == "__main__":
    main()
