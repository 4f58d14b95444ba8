"""The closest pairs of 10,000 sentences, the task of the Sentence-BERT paper, compared with its library.

TERCET_DATA=FOLDER python benchmarks/pairs_speed.py    # Quora questions; without it, the sample data
"""

import argparse
import gzip
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import torch
from machine import machine
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import paraphrase_mining
from texts import mixed_texts

import tercet
from tercet.evaluate.bench.rounds import Action, in_turn, ratio
from tercet.formats.sources import resolve_model
from tercet.similar import closest_pairs

PEER = "sentence-transformers"
PRECISIONS = ("fp32", "bf16", "int8")
COUNT = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(2)
    os.environ["OMP_NUM_THREADS"] = "2"  # for OpenVINO
    texts = sentences(options.sentences)
    peer = SentenceTransformer(str(resolve_model("bi")), device="cpu")
    ours = {each: tercet.load("bi", precision=each, runtime="openvino") for each in PRECISIONS}
    actions = {PEER: Action(lambda: [(a, b) for _, a, b in paraphrase_mining(peer, texts)[:COUNT]])} | {
        f"tercet, {name}": Action(partial(closest, scorer, texts)) for name, scorer in ours.items()
    }
    times = in_turn(actions, rounds=options.rounds)
    found = {name: {tuple(sorted(pair)) for pair in taken.result} for name, taken in times.items()}
    print(f"{machine()}\n{len(texts):,} sentences, {options.rounds} rounds, interleaved\n")
    print(f"| | seconds | ratio (spread) | of the same {COUNT:,} pairs |\n|---|---:|---:|---:|")
    for name, taken in times.items():
        same = len(found[name] & found[PEER]) / COUNT
        print(f"| {name} | {taken.median:.1f} | {ratio(times[PEER], taken).spread} | {same:.1%} |")


def closest(scorer: Any, texts: list[str]) -> list[tuple[int, int]]:
    """The positions of the closest pairs."""
    return [(pair.first, pair.second) for pair in closest_pairs(scorer, texts, COUNT)]


def sentences(count: int) -> list[str]:
    """Distinct sentences."""
    folder = os.environ.get("TERCET_DATA")
    if folder is None:
        samples = mixed_texts()[1]
        return [f"{text} {n}" for n in range(-(-count // len(samples))) for text in samples][:count]
    with gzip.open(Path(folder) / "qqp" / "train_pos.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(count), strict=False)]
    return list(dict.fromkeys(text for row in rows for text in (row["text_a"], row["text_b"])))[:count]


if __name__ == "__main__":
    main()
