"""Pairs per second, compared with CrossEncoder.predict of sentence-transformers in interleaved rounds.

make bench                                     # on the sample data
TERCET_DATA=FOLDER make bench                  # on real data sets
"""

import argparse
import os
import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from machine import machine
from sentence_transformers import CrossEncoder
from texts import mixed_pairs

import tercet
from tercet.evaluate.bench.rounds import Action, in_turn, ratio
from tercet.formats.export import export_int8
from tercet.settings.models import CrossConfig

PEER = "sentence-transformers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # for OpenVINO
    source, pairs = mixed_pairs()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cross"
        config = CrossConfig(head="native")
        tercet.CrossEncoder.from_backbone("bi", config=config, max_tokens=256, device="cpu").save(path)
        peer = CrossEncoder(str(path), device="cpu")
        scorers = {
            f"{runtime} {precision}": tercet.load(path, precision=precision, runtime=runtime)
            for runtime in ("torch", "openvino")
            for precision in ("fp32", "bf16")
        }
        export_int8(path, Path(folder) / "int8")
        scorers["openvino int8"] = tercet.load(Path(folder) / "int8")
    contexts, candidates = zip(*pairs, strict=True)
    actions = {PEER: Action(partial(peer.predict, pairs))} | {
        f"tercet, {name}": Action(partial(scorer.score_pairs, contexts, candidates))
        for name, scorer in scorers.items()
    }
    times = in_turn(actions, rounds=options.rounds)
    tokenizer = scorers["torch fp32"].pair_tokenizer
    lengths = [sum(map(len, tokenizer.ids(pair))) + 3 for pair in pairs]
    print(f"{machine()}")
    print(
        f"{len(pairs)} pairs from {source}: median {statistics.median(lengths):.0f} tokens, "
        f"mean {statistics.mean(lengths):.0f}, longest {max(lengths)}; {options.rounds} rounds, interleaved\n"
    )
    print(f"| cross-encoder | pairs/s | against {PEER} (spread) | largest difference (spread of scores) |")
    print("|---|---:|---:|---:|")
    reference = times[PEER].result
    for name, taken in times.items():
        print(
            f"| {name} | {len(pairs) / taken.median:.0f} "
            f"| {ratio(times[PEER], taken).spread} "
            f"| {np.abs(taken.result - reference).max():.1e} ({reference.std():.1e}) |"
        )


if __name__ == "__main__":
    main()
