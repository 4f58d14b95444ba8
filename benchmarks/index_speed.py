"""Search compared with faiss, a bare matrix product and exhaustive ``match``, interleaved in one run.

Candidates are MiniLM embeddings of real sentences if a data folder is given (TERCET_DATA), and of the sample
data otherwise. Mixtures of two of them fill up to the wanted number; the output says how many are real. Codes
are those of an untrained poly-encoder over MiniLM, with cosine similarity, for real contexts.

make bench                                                           # 100,000 candidates
TERCET_DATA=FOLDER python benchmarks/index_speed.py --candidates 1000000 --vectors vectors.npy
"""

import argparse
import gzip
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import faiss
import numpy as np
import torch
from machine import machine
from texts import mixed_texts

import tercet
from tercet.arrays import unit_vectors
from tercet.evaluate.bench.rounds import Times, ratio
from tercet.files.vectors import open_vectors
from tercet.index import ApproximateIndex, ExactIndex, Item
from tercet.index.store import Store
from tercet.records import Certainty, Codes, Floats
from tercet.scorers.match import match
from tercet.settings.models import PolyConfig

K = 10
SCALE = 10.0
ROUNDS = 5
WARM_UP = 3
"""Contexts of each round that are searched first and not counted."""
SETS = ("nli/train", "twitter_url/train", "qqp/train_pos", "ubuntu_irc/train", "self_dialogue/train_dialogs")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument(
        "--real", type=int, default=100_000, help="maximum number of real sentences to encode"
    )
    parser.add_argument(
        "--vectors", type=Path, help="file to store the real vectors in, or to read them from"
    )
    parser.add_argument("--contexts", type=int, default=60)
    options = parser.parse_args()
    real = real_vectors(options.real, options.vectors)
    vectors = mixed(real, options.candidates)
    share = min(len(real), len(vectors)) / len(vectors)
    print(f"{machine()}, faiss {faiss.__version__}")
    print(f"{len(vectors):,} candidates, {vectors.shape[1]} wide; {share:.0%} real, the others mixtures\n")
    exact = ExactIndex(vectors.shape[1])
    exact.add(np.arange(len(vectors)), vectors)
    compare_with_faiss(exact, vectors, contexts(1, options.contexts))
    compare_with_product(exact, vectors, contexts(64, options.contexts))
    graph = ApproximateIndex(vectors.shape[1])
    start = perf_counter()
    graph.add(np.arange(len(vectors)), vectors)
    print(f"\ngraph: built in {perf_counter() - start:.0f} s\n")
    columns = ("codes", "exhaustive match, ms", "exact index, ms", "graph, ms", "quicker of the two / graph")
    print(f"| {' | '.join(columns)} | exact recall@10 | graph recall@10 | certified | scored |")
    print("|" + "---:|" * 9)
    for codes in (1, 16, 64):
        compare_with_match(graph, exact, vectors, contexts(codes, options.contexts))
    measure_store(vectors)


def texts() -> Iterator[str]:
    """Real sentences, or those of the sample data."""
    folder = os.environ.get("TERCET_DATA")
    if folder is None:
        yield from mixed_texts()[1]
        return
    for name in SETS:
        with gzip.open(Path(folder) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                for column in ("text_a", "text_b", "response", "turns"):
                    value = row.get(column, [])
                    yield from [value] if isinstance(value, str) else value


def real_vectors(limit: int, file: Path | None) -> Floats:
    """``[N, D]``: embeddings of distinct sentences, read from ``file`` if it exists."""
    if file is not None and file.exists():
        return open_vectors(file)
    distinct = list(dict.fromkeys(text for text in texts() if text.strip()))
    np.random.default_rng(0).shuffle(distinct)
    with TemporaryDirectory() as folder:
        path = file or Path(folder) / "vectors.npy"
        tercet.load("bi", precision="bf16").encode(distinct[:limit], path)
        return np.array(open_vectors(path))


def mixed(real: Floats, count: int) -> Floats:
    """``[count, D]``: the real vectors, then sums of two of them in proportions from 6:4 to 9:1."""
    rng = np.random.default_rng(1)
    parts = [np.asarray(real[:count])]
    missing = count - len(parts[0])
    for start in range(0, missing, 50_000):
        size = min(50_000, missing - start)
        one, other = (real[rng.integers(len(real), size=size)] for _ in range(2))
        weight = rng.uniform(0.6, 0.9, size=(size, 1)).astype(np.float32)
        parts.append(unit_vectors(weight * one + (1 - weight) * other))
    return np.ascontiguousarray(np.concatenate(parts))


def contexts(codes: int, count: int) -> Codes:
    """The codes of real contexts."""
    queries = [" ".join(text.split()) for text in mixed_texts(seed=7)[1][:count]]
    if codes == 1:
        return tercet.load("bi").encode_contexts(queries)
    config = PolyConfig(codes=codes, similarity="cosine", candidate_scale=SCALE)
    return tercet.PolyEncoder.from_backbone("bi", config=config).encode_contexts(queries)


def latencies(
    searches: Mapping[str, Callable[[Codes], Any]], codes: Codes
) -> tuple[dict[str, Times], dict[str, list[Any]]]:
    """The median latency of each round, and all results. A search answers the contexts of a round in a row.

    The threads of a library keep spinning for a moment and slow down the next library, so each turn starts
    with contexts that are not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    results: dict[str, list[Any]] = {name: [] for name in searches}
    for positions in np.array_split(np.arange(len(codes)), ROUNDS):
        for name, search in searches.items():
            times = []
            for position in (*positions[:WARM_UP], *positions):
                start = perf_counter()
                result = search(codes.take(slice(position, position + 1)))
                times.append(perf_counter() - start)
                results[name].append(result)
            seconds[name].append(statistics.median(times[WARM_UP:]))
    return {name: Times(tuple(taken)) for name, taken in seconds.items()}, results


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def compare_with_faiss(exact: ExactIndex, vectors: Floats, codes: Codes) -> None:
    """Print the latency of exact search with one code, beside faiss's flat index."""
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)

    def search_flat(threads: int) -> Callable[[Codes], Any]:
        def search(one: Codes) -> Any:
            faiss.omp_set_num_threads(threads)
            return flat.search(one.vectors[:, 0], K)[0][0]

        return search

    peers = {f"faiss flat, {count} threads": search_flat(count) for count in (1, torch.get_num_threads())}
    times, scores = latencies({**peers, "tercet": lambda one: exact.search(one, K).scores[0]}, codes)
    fastest = min(peers, key=lambda name: times[name].median)
    error = max(np.abs(a - b).max() for a, b in zip(scores[fastest], scores["tercet"], strict=True))
    print(f"| one code, exact | {', ms | '.join(times)}, ms | best faiss / tercet | scores differ by |")
    print("|---|" + "---:|" * (len(times) + 2))
    medians = " | ".join(milliseconds(taken.median) for taken in times.values())
    print(f"| | {medians} | {ratio(times[fastest], times['tercet']).spread} | {error:.0e} |\n")


def compare_with_product(exact: ExactIndex, vectors: Floats, codes: Codes) -> None:
    """Print the latency of exact search with 64 codes, beside the bare matrix product."""
    searches = {
        "product": lambda one: (vectors @ one.vectors[0].T).shape,  # keeping the product would cost memory
        "tercet": lambda one: exact.search(one, K, scale=SCALE),
    }
    times, _ = latencies(searches, codes)
    print("| 64 codes, exact | bare product, ms | tercet, ms | tercet / product (spread) |")
    print("|---|---:|---:|---:|")
    medians = " | ".join(milliseconds(times[name].median) for name in searches)
    print(f"| | {medians} | {ratio(times['tercet'], times['product']).spread} |")


def recall(expected: list[Any], found: list[Any]) -> float:
    """The mean share of the expected ids that were found."""
    pairs = zip(expected, found, strict=True)
    return statistics.mean(len(set(a.tolist()) & set(b.tolist())) / K for a, b in pairs)


def compare_with_match(graph: ApproximateIndex, exact: ExactIndex, vectors: Floats, codes: Codes) -> None:
    """Print the latency and recall of both indexes, beside exhaustive ``match``."""
    candidates = torch.from_numpy(vectors)

    def exhaustive(one: Codes) -> Any:
        with torch.inference_mode():
            scores = match(torch.from_numpy(one.vectors), candidates, scale=SCALE)[0]
            return torch.topk(scores, K).indices.numpy()

    searches: dict[str, Callable[[Codes], Any]] = {
        "match": exhaustive,
        "exact": lambda one: exact.search(one, K, scale=SCALE).ids[0],
        "graph": lambda one: graph.search(one, K, scale=SCALE),
    }
    times, results = latencies(searches, codes)
    found = results["graph"]
    proven = np.mean([result.certainty[0] is not Certainty.BUDGET_REACHED for result in found])
    scored = np.mean([result.scored[0] for result in found])
    ids = {"exact": results["exact"], "graph": [result.ids[0] for result in found]}
    recalls = " | ".join(f"{recall(results['match'], ids[name]):.3f}" for name in ids)
    medians = " | ".join(milliseconds(taken.median) for taken in times.values())
    faster = min(("match", "exact"), key=lambda name: times[name].median)
    print(
        f"| {codes.mask.shape[1]} | {medians} | {ratio(times[faster], times['graph']).spread} "
        f"| {recalls} | {proven:.0%} | {scored:,.0f} |"
    )


def measure_store(vectors: Floats) -> None:
    """Print what a store costs: time to fill, bytes, time to open, and searches while another writes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.tercet"
        store = Store.create(path, vectors.shape[1], lexical=False)
        start = perf_counter()
        for first in range(0, len(vectors), 8192):
            part = vectors[first : first + 8192]
            store.add([Item(str(first + n), f"text {first + n}") for n in range(len(part))], part)
        filled = perf_counter() - start
        store.compact()
        compacted = perf_counter() - start - filled
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        store.close()
        start = perf_counter()
        opened = Store(path)
        opened.index()
        opening = perf_counter() - start
        quiet, busy = search_while_writing(opened, Store(path), vectors)
        print(
            f"\nstore, vectors given: {len(vectors) / filled:,.0f} candidates/s; compacted, with a graph, in "
            f"{compacted:.0f} s; {size / len(vectors):,.0f} bytes each; opened in {opening * 1e3:.0f} ms; "
            f"a search {milliseconds(quiet)} ms, right after each addition by another {milliseconds(busy)} ms"
        )


def search_while_writing(reader: Store, writer: Store, vectors: Floats) -> tuple[float, float]:
    """The median seconds of a search, without and right after an addition by another store."""
    one = Codes(vectors[:1, None], np.ones((1, 1), dtype=np.bool_))
    quiet: list[float] = []
    busy: list[float] = []
    for n in range(40):
        for times, adding in ((quiet, False), (busy, True)):
            if adding:
                writer.add([Item(f"new {n}", "new")], vectors[n : n + 1])
            start = perf_counter()
            reader.search(one, K)
            times.append(perf_counter() - start)
    return statistics.median(quiet[5:]), statistics.median(busy[5:])


if __name__ == "__main__":
    main()
