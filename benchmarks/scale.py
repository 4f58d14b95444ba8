"""Exact and approximate search at 1 and 10 million vectors, for the plan in docs/scale.md.

``python benchmarks/scale.py --candidates 1000000 --storage int8 --graph``

The first vectors are MiniLM embeddings of real sentences, as in index_speed.py; the others are mixtures of
two of them. Codes are those of an untrained poly-encoder for real contexts. Candidates have no texts: the
store adds about 200 bytes and the text of each.
"""

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil
from index_speed import SCALE, K, contexts, real_vectors
from machine import machine

from tercet.arrays import unit_vectors
from tercet.index import ApproximateIndex, ExactIndex
from tercet.index.base import VectorIndex
from tercet.records import Certainty, Codes, Floats

BLOCK = 100_000


def mixtures(real: Floats, count: int) -> Iterator[Floats]:
    """``count`` unit vectors in blocks: the real ones, then mixtures of two of them."""
    rng = np.random.default_rng(0)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        left, right = rng.integers(len(real), size=(2, size))
        share = rng.uniform(0.3, 0.7, size=(size, 1)).astype(np.float32)
        block = unit_vectors(share * real[left] + (1 - share) * real[right])
        if not start:
            block[: len(real)] = real[:size]
        yield block


def measure(index: VectorIndex, codes: Codes, label: str) -> None:
    """Print the times of single searches, and how certain their results are."""
    times, certain, scored = [], 0, []
    for row in range(len(codes)):
        one = codes.take(slice(row, row + 1))
        start = perf_counter()
        result = index.search(one, K, scale=SCALE)
        times.append(1000 * (perf_counter() - start))
        certain += result.certainty[0] in (Certainty.CERTIFIED, Certainty.CERTIFIED_UP_TO_RECALL)
        scored.append(int(result.scored[0]))
    times, scored = times[2:], scored[2:]  # the first ones touch pages for the first time
    p95 = sorted(times)[int(0.95 * len(times))]
    print(
        f"{label:18} p50 {statistics.median(times):9.1f} ms  p95 {p95:9.1f} ms  "
        f"certain {certain}/{len(codes)}  scored {statistics.median(scored):,.0f}",
        flush=True,
    )


def main() -> None:
    """Build the index in blocks, then search it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--real", type=int, default=20_000)
    parser.add_argument(
        "--vectors", type=Path, help="file to store the real vectors in, or to read them from"
    )
    parser.add_argument("--storage", default="int8", choices=("float32", "bfloat16", "int8"))
    parser.add_argument("--graph", action="store_true", help="also build an HNSW graph")
    parser.add_argument("--contexts", type=int, default=30)
    options = parser.parse_args()
    real = np.asarray(real_vectors(options.real, options.vectors))
    print(f"{machine()}; load {psutil.getloadavg()[0]:.1f}")
    indexes: list[VectorIndex] = [ExactIndex(real.shape[1], storage=options.storage)]
    if options.graph:
        indexes.append(ApproximateIndex(real.shape[1]))
    queries = {codes: contexts(codes, options.contexts) for codes in (1, 64)}
    for index in indexes:
        before, start, number = psutil.Process().memory_info().rss, perf_counter(), 0
        for block in mixtures(real, options.candidates):
            index.add(np.arange(number, number + len(block)), block)
            number += len(block)
        index.search(queries[1].take(slice(0, 1)), K, scale=SCALE)  # builds a graph
        grown = (psutil.Process().memory_info().rss - before) / 1e9
        print(
            f"\n{type(index).__name__}, {len(index):,} vectors, {options.storage}: "
            f"{perf_counter() - start:.0f} s to build, {grown:.2f} GB"
        )
        for codes, each in queries.items():
            measure(index, each, f"{codes} code{'s' * (codes > 1)}")


if __name__ == "__main__":
    main()
