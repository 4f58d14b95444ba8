"""The closest pairs of 10,000 sentences, Sentence-BERT's headline job, against its library.

TERCET_DATA=FOLDER python benchmarks/pairs_speed.py    # Quora's questions; without it, the sample data
"""

import argparse
import gzip
import json
import os
import statistics
from pathlib import Path
from time import perf_counter

import torch
from machine import machine
from rounds import ratio
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import paraphrase_mining
from texts import mixed_texts

import tercet
from tercet.models.sources import find_folder

PEER, OURS, HALF = "sentence-transformers", "tercet", "tercet, bf16"
COUNT = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(2)
    texts = sentences(options.sentences)
    peer = SentenceTransformer(str(find_folder("bi")), device="cpu")
    full, half = tercet.load("bi", device="cpu"), tercet.load("bi", precision="bf16", device="cpu")
    contestants = {
        PEER: lambda: [(a, b) for _, a, b in paraphrase_mining(peer, texts)[:COUNT]],
        OURS: lambda: [(pair.first, pair.second) for pair in tercet.closest_pairs(full, texts, COUNT)],
        HALF: lambda: [(pair.first, pair.second) for pair in tercet.closest_pairs(half, texts, COUNT)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    found = {}
    for _ in range(options.rounds):
        for name, contestant in contestants.items():
            start = perf_counter()
            found[name] = {tuple(sorted(pair)) for pair in contestant()}
            seconds[name].append(perf_counter() - start)
    print(f"{machine()}\n{len(texts):,} sentences, {options.rounds} rounds, interleaved\n")
    print(f"| | seconds | ratio (spread) | of the same {COUNT:,} pairs |\n|---|---:|---:|---:|")
    for name, times in seconds.items():
        same = len(found[name] & found[PEER]) / COUNT
        print(f"| {name} | {statistics.median(times):.1f} | {ratio(seconds[PEER], times)} | {same:.1%} |")


def sentences(count: int) -> list[str]:
    """Different sentences."""
    folder = os.environ.get("TERCET_DATA")
    if folder is None:
        found = mixed_texts()[1]
        return [f"{text} {n}" for n in range(-(-count // len(found))) for text in found][:count]
    with gzip.open(Path(folder) / "qqp" / "train_pos.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(count), strict=False)]
    return list(dict.fromkeys(text for row in rows for text in (row["text_a"], row["text_b"])))[:count]


if __name__ == "__main__":
    main()
