"""Pairs a second against sentence-transformers' CrossEncoder.predict, interleaved in one run.

make bench                                     # on the sample data
TERCET_DATA=FOLDER make bench                  # on real sets
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
import torch
from machine import machine
from rounds import Contestant, interleaved, ratio
from sentence_transformers import CrossEncoder
from texts import mixed_pairs

import tercet

PEER = "sentence-transformers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    source, pairs = mixed_pairs()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cross"
        config = tercet.CrossConfig(head="native")
        tercet.CrossEncoder.from_backbone("bi", config=config, max_tokens=256, device="cpu").save(path)
        peer = CrossEncoder(str(path), device="cpu")
        scorers = {
            precision: tercet.CrossEncoder.load(path, precision=precision, device="cpu")
            for precision in ("fp32", "bf16")
        }
    readers: dict[str, Contestant] = {PEER: peer.predict}
    for precision, scorer in scorers.items():
        readers[f"tercet {precision}"] = lambda pairs, scorer=scorer: scorer.score_pairs(
            *zip(*pairs, strict=True)
        )
    seconds, scores = interleaved(readers, pairs, rounds=options.rounds)
    tokenizer = scorers["fp32"].pair_tokenizer
    lengths = [sum(map(len, tokenizer.ids(pair))) + 3 for pair in pairs]
    print(f"{machine()}")
    print(
        f"{len(pairs)} pairs from {source}: median {statistics.median(lengths):.0f} tokens, "
        f"mean {statistics.mean(lengths):.0f}, longest {max(lengths)}; {options.rounds} rounds, interleaved\n"
    )
    print(f"| cross-encoder | pairs/s | against {PEER} (spread) | largest difference (spread of scores) |")
    print("|---|---:|---:|---:|")
    for name, taken in seconds.items():
        print(
            f"| {name} | {len(pairs) / statistics.median(taken):.0f} "
            f"| {ratio(seconds[PEER], taken)} "
            f"| {np.abs(scores[name] - scores[PEER]).max():.1e} ({scores[PEER].std():.1e}) |"
        )


if __name__ == "__main__":
    main()
