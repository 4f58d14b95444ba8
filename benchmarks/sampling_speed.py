"""New pairs by words and by meaning: how fast against rank-bm25, and a million of them in how much memory.

python benchmarks/sampling_speed.py                                             # the sample data
TERCET_DATA=FOLDER python benchmarks/sampling_speed.py --texts 200000 --pairs 1000000
"""

import argparse
import gzip
import json
import os
import resource
import statistics
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from machine import machine
from rank_bm25 import BM25Okapi
from rounds import ratio
from texts import mixed_texts

import tercet
from tercet.augment.sampling import bm25_pairs, distinct_texts, semantic_pairs
from tercet.index.lexical import LexicalIndex

SETS = (
    ("nli/train", ("text_a", "text_b")),
    ("qqp/train_labelled", ("text_a", "text_b")),
    ("twitter_url/train", ("text_a", "text_b")),
    ("self_dialogue/train_dialogs", ("turns",)),
)
TOP_K = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--semantic", action="store_true", help="encode the texts, and pair them by meaning")
    options = parser.parse_args()
    texts = distinct_texts(islice(sentences(), 2 * options.texts))[: options.texts]
    print(f"{machine()}\n{len(texts):,} texts, {options.rounds} rounds, interleaved\n")
    against_peer(texts, queries=options.queries, rounds=options.rounds)
    top_k = max(TOP_K, -(-options.pairs // len(texts)) + 2)  # some are found from both sides
    start = perf_counter()
    count = sum(1 for _ in islice(bm25_pairs(texts, top_k=top_k), options.pairs))
    print(f"\nbm25, top {top_k}: {count:,} pairs in {perf_counter() - start:.0f} s, peak memory {memory()}")
    if options.semantic:
        start = perf_counter()
        vectors = tercet.load("bi", precision="bf16").encode_candidates(texts)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        middle = perf_counter()
        count = sum(1 for _ in islice(semantic_pairs(vectors, top_k=top_k), options.pairs))
        print(
            f"semantic, top {top_k}: {count:,} pairs in {perf_counter() - middle:.0f} s after "
            f"{middle - start:.0f} s of encoding, peak memory {memory()}"
        )


def against_peer(texts: list[str], *, queries: int, rounds: int) -> None:
    """The best partners of some texts, by both, in turn."""
    asked = texts[:: max(1, len(texts) // queries)][:queries]
    with TemporaryDirectory() as folder:
        ours = LexicalIndex(Path(folder))
        start = perf_counter()
        ours.add(np.arange(len(texts)), texts)
        built = perf_counter() - start
        start = perf_counter()
        peer = BM25Okapi([text.lower().split() for text in texts])
        peer_built = perf_counter() - start
        contestants = {
            "rank-bm25": lambda: [
                np.argpartition(-peer.get_scores(text.lower().split()), TOP_K) for text in asked
            ],
            "tercet": lambda: [ours.search(text, TOP_K + 1) for text in asked],
        }
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(rounds):
            for name, contestant in contestants.items():
                start = perf_counter()
                contestant()
                seconds[name].append(perf_counter() - start)
    print("| | index, s | ms a text | ratio (spread) |\n|---|---:|---:|---:|")
    for name, once in (("rank-bm25", peer_built), ("tercet", built)):
        each = 1000 * statistics.median(seconds[name]) / len(asked)
        print(f"| {name} | {once:.1f} | {each:.2f} | {ratio(seconds['rank-bm25'], seconds[name])} |")


def sentences() -> Iterator[str]:
    """Real ones where a data folder is given."""
    folder = os.environ.get("TERCET_DATA")
    if folder is None:
        yield from mixed_texts()[1]
        return
    for name, columns in SETS:
        with gzip.open(Path(folder) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                for column in columns:
                    value = row[column]
                    yield from [value] if isinstance(value, str) else value


def memory() -> str:
    """The most that this process has held."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


if __name__ == "__main__":
    main()
