"""New pairs by BM25 and by embeddings: the time compared with rank-bm25, and the memory for a million pairs.

python benchmarks/sampling_speed.py                                             # on the sample data
TERCET_DATA=FOLDER python benchmarks/sampling_speed.py --texts 200000 --pairs 1000000
"""

import argparse
import gzip
import json
import os
import resource
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from machine import machine
from rank_bm25 import BM25Okapi
from texts import mixed_texts

import tercet
from tercet.arrays import unit_vectors
from tercet.augment.sampling import bm25_pairs, distinct_texts, semantic_pairs
from tercet.evaluate.bench.rounds import Action, in_turn, ratio
from tercet.index.lexical import LexicalIndex

SETS = (
    ("nli/train", ("text_a", "text_b")),
    ("qqp/train_labelled", ("text_a", "text_b")),
    ("twitter_url/train", ("text_a", "text_b")),
    ("self_dialogue/train_dialogs", ("turns",)),
)
TOP_K = 6
PEER, OURS = "rank-bm25", "tercet"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--semantic", action="store_true", help="also encode the texts and pair them by vectors"
    )
    options = parser.parse_args()
    texts = distinct_texts(islice(sentences(), 2 * options.texts))[: options.texts]
    print(f"{machine()}\n{len(texts):,} texts, {options.rounds} rounds, interleaved\n")
    compare_with_peer(texts, queries=options.queries, rounds=options.rounds)
    top_k = max(TOP_K, -(-options.pairs // len(texts)) + 2)  # some pairs are found from both sides
    start = perf_counter()
    count = sum(1 for _ in islice(bm25_pairs(texts, top_k=top_k), options.pairs))
    print(f"\nbm25, top {top_k}: {count:,} pairs in {perf_counter() - start:.0f} s, peak memory {memory()}")
    if options.semantic:
        pair_by_vectors(texts, top_k=top_k, pairs=options.pairs)


def pair_by_vectors(texts: list[str], *, top_k: int, pairs: int) -> None:
    """Print the time and memory to encode the texts and to pair each with its nearest neighbours."""
    start = perf_counter()
    vectors = unit_vectors(tercet.load("bi", precision="bf16").encode_candidates(texts))
    encoded = perf_counter()
    count = sum(1 for _ in islice(semantic_pairs(vectors, top_k=top_k), pairs))
    print(
        f"semantic, top {top_k}: {count:,} pairs in {perf_counter() - encoded:.0f} s after "
        f"{encoded - start:.0f} s of encoding, peak memory {memory()}"
    )


def compare_with_peer(texts: list[str], *, queries: int, rounds: int) -> None:
    """Print the time to index the texts and to find the best partners of some of them."""
    chosen = texts[:: max(1, len(texts) // queries)][:queries]
    with TemporaryDirectory() as folder:
        ours = LexicalIndex(Path(folder))
        start = perf_counter()
        ours.add(np.arange(len(texts)), texts)
        indexed = {OURS: perf_counter() - start}
        start = perf_counter()
        peer = BM25Okapi([text.lower().split() for text in texts])
        indexed[PEER] = perf_counter() - start
        actions = {
            PEER: Action(
                lambda: [np.argpartition(-peer.get_scores(text.lower().split()), TOP_K) for text in chosen]
            ),
            OURS: Action(lambda: [ours.search(text, TOP_K + 1) for text in chosen]),
        }
        times = in_turn(actions, rounds=rounds)
    print("| | index, s | ms a text | ratio (spread) |\n|---|---:|---:|---:|")
    for name, taken in times.items():
        milliseconds = 1000 * taken.median / len(chosen)
        speedup = ratio(times[PEER], taken).spread
        print(f"| {name} | {indexed[name]:.1f} | {milliseconds:.2f} | {speedup} |")


def sentences() -> Iterator[str]:
    """Sentences of real data sets if TERCET_DATA is set, otherwise of the sample data."""
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
    """The peak memory of this process."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


if __name__ == "__main__":
    main()
