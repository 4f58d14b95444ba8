"""A trained model with a share of what training added to it, in two bits a weight: the share is chosen here.

python recipes/default/mix.py RECIPE MODEL -o OUT --data FOLDER

A model that has learnt dialogues knows less of what it knew before: questions and answers, long texts.
Between where it began (share 0) and where it ended (share 1) lie models that are good at both. RECIPE says
how MODEL began. Five figures are measured, and the share with the highest mean of them is kept:

replies   R@1 on default/replies_dev (by data.py)
stsb      Spearman on STSb's dev file
scifact   nDCG@10 of 200 of SciFact's training queries, the 50 best of BM25 read again
faq       R@1 of tercet's sample questions among all answers
talks     R@1 of tercet's sample dialogues among all last turns

FOLDER holds default (by data.py), stsb and beir_scifact; BM25 is tantivy (pip install 'tercet[lexical]').
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
from tercet.evaluate.metrics import gains_in_order, ndcg, places, spearman
from tercet.files import check_free
from tercet.index.lexical import LexicalIndex
from tercet.models.differences import check_alike, save_differences
from tercet.models.load import AnyScorer
from tercet.models.start import Start, make_scorer
from tercet.training.recipe import read_recipe

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
CHOICES = 1500
QUERIES, READ, DEPTH = 200, 50, 10

Figure = Callable[[AnyScorer], float]


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def figures(folder: Path) -> dict[str, Figure]:
    """What is measured, by name."""
    replies = list(rows(folder, "default/replies_dev"))[:CHOICES]
    pairs = list(rows(folder, "stsb/dev"))
    asked, talks = questions("en"), dialogues("en")
    answers = [each.context for each in asked], [each.answer for each in asked]
    turns = [talk.turns[:-1] for talk in talks], [talk.turns[-1] for talk in talks]
    return {
        "replies": partial(of_choices, replies),
        "stsb": partial(of_pairs, pairs),
        "scifact": partial(of_queries, list(read_again(folder / "beir_scifact"))),
        "faq": partial(among_all, *answers),
        "talks": partial(among_all, *turns),
    }


def of_choices(cases: Sequence[dict[str, Any]], scorer: AnyScorer) -> float:
    """R@1 where each context has its own candidates, and ``label`` is the place of the right one."""
    return fmean(
        float(places(scores[None], [case["label"]])[0] == 1)
        for case, scores in zip(cases, scores_of(cases, scorer), strict=True)
    )


def of_queries(cases: Sequence[dict[str, Any]], scorer: AnyScorer) -> float:
    """nDCG where a query has some texts and their ``gains``; ``every`` has those of texts not found too."""
    return fmean(
        ndcg(gains_in_order(scores, case["gains"]), case["every"], k=DEPTH)
        for case, scores in zip(cases, scores_of(cases, scorer), strict=True)
    )


def of_pairs(pairs: Sequence[dict[str, Any]], scorer: AnyScorer) -> float:
    """How well scores follow those that people gave."""
    scores = scorer.score_pairs([each["text_a"] for each in pairs], [each["text_b"] for each in pairs])
    return spearman(scores, [each["score"] for each in pairs])


def among_all(contexts: Sequence[Any], answers: Sequence[str], scorer: AnyScorer) -> float:
    """R@1 where every answer is a candidate of every context."""
    return float((places(scorer.score_many(contexts, answers), range(len(contexts))) == 1).mean())


def scores_of(cases: Sequence[dict[str, Any]], scorer: AnyScorer) -> list[NDArray[Any]]:
    """The scores of each context's own candidates."""
    contexts = [case["context"] for case in cases for _ in case["candidates"]]
    candidates = [text for case in cases for text in case["candidates"]]
    ends = np.cumsum([len(case["candidates"]) for case in cases])
    return np.split(scorer.score_pairs(contexts, candidates), ends[:-1])


def read_again(folder: Path) -> Iterator[dict[str, Any]]:
    """Some training queries of a retrieval set, each with the texts that BM25 finds."""
    texts = {row["_id"]: f"{row['title']}\n{row['text']}" for row in rows(folder, "corpus")}
    queries = {row["_id"]: row["text"] for row in rows(folder, "queries")}
    right: dict[str, dict[str, float]] = {}
    for row in rows(folder, "qrels_train"):
        right.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    keys = list(texts)
    with tempfile.TemporaryDirectory() as place:
        index = LexicalIndex(Path(place))
        index.add(np.arange(len(keys)), texts.values())
        for query in random.Random(0).sample(sorted(right), QUERIES):
            found = [keys[number] for number, _ in index.search(queries[query], READ)]
            yield {
                "context": queries[query],
                "candidates": [texts[key] for key in found],
                "gains": [right[query].get(key, 0) for key in found],
                "every": list(right[query].values()),
            }


@torch.no_grad()
def mixed(start: Start, trained: AnyScorer, share: float) -> AnyScorer:
    """The model that lies so far between two."""
    made = make_scorer(start, device="cpu")
    ends = dict(trained.named_parameters())
    for name, weight in made.named_parameters():
        weight.lerp_(ends[name], share)
    return made


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    given = parser.parse_args()
    check_free(given.out)
    start, trained = read_recipe(given.recipe).model, tercet.load(given.model, device="cpu")
    check_alike(trained, make_scorer(start, device="cpu"))
    measured = figures(given.data)
    means: dict[float, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for share in given.shares:
            small = save_differences(mixed(start, trained, share), start, Path(place) / str(share), bits=2)
            scorer = tercet.load(small)
            found = {name: 100 * figure(scorer) for name, figure in measured.items()}
            means[share] = fmean(found.values())
            print(
                f"{share}: {means[share]:.1f}", {name: round(x, 1) for name, x in found.items()}, flush=True
            )
    best = max(means, key=means.__getitem__)
    save_differences(mixed(start, trained, best), start, given.out, bits=2)
    print(f"{given.out}: share {best}")


if __name__ == "__main__":
    main()
