"""Sentences per second, compared with sentence-transformers in interleaved rounds.

make bench                                     # on the sample data
TERCET_DATA=FOLDER make bench                  # on real data sets
"""

import argparse
import os
import statistics
from functools import partial

import numpy as np
import torch
from machine import machine
from sentence_transformers import SentenceTransformer
from texts import mixed_texts

import tercet
from tercet.evaluate.bench.rounds import Action, in_turn, ratio
from tercet.formats.backbone import backbone_folder

PEER = "sentence-transformers"
HALVES = ("fp32", "bf16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # for OpenVINO
    source, texts = mixed_texts()
    folder = str(backbone_folder())
    peer = SentenceTransformer(folder, device="cpu")
    half = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": torch.bfloat16})
    scorers = {
        f"{runtime} {precision}": tercet.load("bi", precision=precision, runtime=runtime)
        for runtime, precisions in (("torch", HALVES), ("openvino", (*HALVES, "int8")))
        for precision in precisions
    }
    actions = {
        PEER: Action(partial(peer.encode, texts)),
        f"{PEER}, bf16": Action(partial(half.encode, texts)),
    } | {
        f"tercet, {name}": Action(partial(scorer.encode_candidates, texts))
        for name, scorer in scorers.items()
    }
    times = in_turn(actions, rounds=options.rounds)
    lengths = [len(ids) for ids in scorers["torch fp32"].token_ids(texts, "candidate")]
    print(f"{machine()}")
    print(
        f"{len(texts)} texts from {source}: median {statistics.median(lengths):.0f} tokens, "
        f"mean {statistics.mean(lengths):.0f}, longest {max(lengths)}; {options.rounds} rounds, interleaved\n"
    )
    print(f"| encoder | texts/s | against {PEER} (spread) | largest difference | same top 10 |")
    print("|---|---:|---:|---:|---:|")
    reference = times[PEER].result
    for name, taken in times.items():
        print(
            f"| {name} | {len(texts) / taken.median:.0f} "
            f"| {ratio(times[PEER], taken).spread} "
            f"| {np.abs(taken.result - reference).max():.1e} "
            f"| {same_top(reference, taken.result, k=10):.4f} |"
        )


def same_top(reference: np.ndarray, other: np.ndarray, *, k: int) -> float:
    """The share of each text's ``k`` nearest neighbours on which both agree."""
    ours, theirs = (nearest(vectors, k) for vectors in (other, reference))
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(ours, theirs, strict=True)]))


def nearest(vectors: np.ndarray, k: int) -> np.ndarray:
    """``[N, k]``: the nearest neighbours of each text."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1)[:, :k]


if __name__ == "__main__":
    main()
