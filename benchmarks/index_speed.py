"""Search against faiss, the bare matrix product and exhaustive ``match``, interleaved in one run.

Candidates are MiniLM's vectors of real sentences where a data folder is given (TERCET_DATA), of the sample
data otherwise; what is missing to the wanted number is mixtures of two of them, and the table says how many.
Codes are those of an untrained poly-encoder over MiniLM, by cosine, for real contexts.

make bench                                                           # 100,000 candidates
TERCET_DATA=FOLDER python benchmarks/index_speed.py --candidates 1000000 --vectors vectors.npy
"""

import argparse
import gzip
import json
import os
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import faiss
import numpy as np
import torch
from machine import machine
from rounds import ratio
from texts import mixed_texts

import tercet
from tercet.config import PolyConfig
from tercet.index.items import Item
from tercet.index.store import Store
from tercet.records import Codes, Floats

K = 10
SCALE = 10.0
ROUNDS = 5
SETS = ("nli/train", "twitter_url/train", "qqp/train_pos", "ubuntu_irc/train", "self_dialogue/train_dialogs")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--real", type=int, default=100_000, help="how many real sentences to encode at most")
    parser.add_argument("--vectors", type=Path, help="keep the real vectors here, or take them from here")
    parser.add_argument("--contexts", type=int, default=60)
    options = parser.parse_args()
    real = real_vectors(options.real, options.vectors)
    vectors = mixed(real, options.candidates)
    share = min(len(real), len(vectors)) / len(vectors)
    print(f"{machine()}, faiss {faiss.__version__}")
    print(f"{len(vectors):,} candidates, {vectors.shape[1]} wide; {share:.0%} real, the others mixtures\n")
    exact = tercet.ExactIndex(vectors.shape[1])
    exact.add(np.arange(len(vectors)), vectors)
    against_faiss(exact, vectors, contexts(1, options.contexts))
    against_product(exact, vectors, contexts(64, options.contexts))
    graph = tercet.ApproximateIndex(vectors.shape[1])
    start = perf_counter()
    graph.add(np.arange(len(vectors)), vectors)
    print(f"\ngraph: built in {perf_counter() - start:.0f} s\n")
    named = ("codes", "exhaustive match, ms", "exact index, ms", "graph, ms", "quicker of the two / graph")
    print(f"| {' | '.join(named)} | exact recall@10 | graph recall@10 | certified | scored |")
    print("|" + "---:|" * 9)
    for codes in (1, 16, 64):
        against_match(graph, exact, vectors, contexts(codes, options.contexts))
    stored(vectors)


def texts() -> Iterator[str]:
    """Real sentences, or the sample data."""
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


def real_vectors(most: int, file: Path | None) -> Floats:
    if file is not None and file.exists():
        return tercet.open_vectors(file)
    different = list(dict.fromkeys(text for text in texts() if text.strip()))
    np.random.default_rng(0).shuffle(different)
    with TemporaryDirectory() as folder:
        path = file or Path(folder) / "vectors.npy"
        tercet.load("bi", precision="bf16").encode(different[:most], path)
        return np.array(tercet.open_vectors(path))


def mixed(real: Floats, count: int) -> Floats:
    """Real vectors, then sums of two of them in proportions from 6:4 to 9:1."""
    chance = np.random.default_rng(1)
    parts = [np.asarray(real[:count])]
    missing = count - len(parts[0])
    for start in range(0, missing, 50_000):
        size = min(50_000, missing - start)
        one, other = (real[chance.integers(len(real), size=size)] for _ in range(2))
        weight = chance.uniform(0.6, 0.9, size=(size, 1)).astype(np.float32)
        made = weight * one + (1 - weight) * other
        parts.append(made / np.linalg.norm(made, axis=1, keepdims=True))
    return np.ascontiguousarray(np.concatenate(parts))


def contexts(codes: int, count: int) -> Codes:
    """The codes of real contexts."""
    asked = [" ".join(text.split()) for text in mixed_texts(seed=7)[1][:count]]
    if codes == 1:
        return tercet.load("bi").encode_contexts(asked)
    config = PolyConfig(codes=codes, similarity="cosine", candidate_scale=SCALE)
    return tercet.PolyEncoder.from_backbone("bi", config=config).encode_contexts(asked)


def timed(
    contestants: dict[str, Callable[[Codes], Any]], codes: Codes
) -> tuple[dict[str, list[float]], dict[str, list[Any]]]:
    """The median seconds of each round and all results; a contestant answers a round's contexts in a row.

    The threads of one library go on waiting for work for a moment and are in the way of the next one's, so a
    round begins with contexts that do not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    results: dict[str, list[Any]] = {name: [] for name in contestants}
    for places in np.array_split(np.arange(len(codes)), ROUNDS):
        for name, contestant in contestants.items():
            times = []
            for place in (*places[:3], *places):
                start = perf_counter()
                found = contestant(codes.take(slice(place, place + 1)))
                times.append(perf_counter() - start)
                results[name].append(found)
            seconds[name].append(statistics.median(times[3:]))
    return seconds, results


def middle(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.2f}"


def against_faiss(exact: tercet.ExactIndex, vectors: Floats, codes: Codes) -> None:
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)

    def search(threads: int) -> Callable[[Codes], Any]:
        def with_threads(one: Codes) -> Any:
            faiss.omp_set_num_threads(threads)
            return flat.search(one.vectors[:, 0], K)[0][0]

        return with_threads

    ways = {f"faiss flat, {count} threads": search(count) for count in (1, torch.get_num_threads())}
    seconds, found = timed({**ways, "tercet": lambda one: exact.search(one, K).scores[0]}, codes)
    best = min(ways, key=lambda name: statistics.median(seconds[name]))
    off = max(np.abs(a - b).max() for a, b in zip(found[best], found["tercet"], strict=True))
    print(f"| one code, exact | {', ms | '.join(seconds)}, ms | best faiss / tercet | scores differ by |")
    print("|---|" + "---:|" * (len(seconds) + 2))
    times = " | ".join(map(middle, seconds.values()))
    print(f"| | {times} | {ratio(seconds[best], seconds['tercet'])} | {off:.0e} |\n")


def against_product(exact: tercet.ExactIndex, vectors: Floats, codes: Codes) -> None:
    contestants = {
        "product": lambda one: (vectors @ one.vectors[0].T).shape,  # what is kept would cost new memory
        "tercet": lambda one: exact.search(one, K, scale=SCALE),
    }
    seconds, _ = timed(contestants, codes)
    print("| 64 codes, exact | bare product, ms | tercet, ms | tercet / product (spread) |")
    print("|---|---:|---:|---:|")
    times = " | ".join(middle(seconds[name]) for name in ("product", "tercet"))
    print(f"| | {times} | {ratio(seconds['tercet'], seconds['product'])} |")


def shared(ones: list[Any], others: list[Any]) -> float:
    """The mean share of what two searches both found."""
    both = [set(one.tolist()) & set(other.tolist()) for one, other in zip(ones, others, strict=True)]
    return statistics.mean(len(each) / K for each in both)


def against_match(
    graph: tercet.ApproximateIndex, exact: tercet.ExactIndex, vectors: Floats, codes: Codes
) -> None:
    candidates = torch.from_numpy(vectors)

    def exhaustive(one: Codes) -> Any:
        with torch.inference_mode():
            scores = tercet.match(torch.from_numpy(one.vectors), candidates, scale=SCALE)[0]
            return torch.topk(scores, K).indices.numpy()

    contestants: dict[str, Callable[[Codes], Any]] = {
        "match": exhaustive,
        "exact": lambda one: exact.search(one, K, scale=SCALE).ids[0],
        "graph": lambda one: graph.search(one, K, scale=SCALE),
    }
    seconds, found = timed(contestants, codes)
    recall, same = (
        np.mean(
            [len(set(a.tolist()) & set(b.tolist())) / K for a, b in zip(found["match"], others, strict=True)]
        )
        for others in ([each.ids[0] for each in found["graph"]], found["exact"])
    )
    proven = np.mean([each.certainty[0] != "budget reached" for each in found["graph"]])
    scored = np.mean([each.scored[0] for each in found["graph"]])
    times = " | ".join(map(middle, seconds.values()))
    quicker = min(("match", "exact"), key=lambda name: statistics.median(seconds[name]))
    print(
        f"| {codes.mask.shape[1]} | {times} | {ratio(seconds[quicker], seconds['graph'])} | {same:.3f} "
        f"| {recall:.3f} | {proven:.0%} | {scored:,.0f} |"
    )


def stored(vectors: Floats) -> None:
    """What a folder costs: time to fill, bytes, time to open, and searches while somebody adds."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.tercet"
        store = Store.create(path, vectors.shape[1], words=False)
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
        one = Codes(vectors[:1, None], np.ones((1, 1), dtype=np.bool_))
        writer, quiet, busy = Store(path), [], []
        for n in range(40):
            for times, adding in ((quiet, False), (busy, True)):
                if adding:
                    writer.add([Item(f"new {n}", "new")], vectors[n : n + 1])
                start = perf_counter()
                opened.search(one, K)
                times.append(perf_counter() - start)
        print(
            f"\nstore, vectors given: {len(vectors) / filled:,.0f} candidates/s; compacted, with a graph, in "
            f"{compacted:.0f} s; {size / len(vectors):,.0f} bytes each; opened in {opening * 1e3:.0f} ms; "
            f"a search {middle(quiet[5:])} ms, right after each addition by another {middle(busy[5:])} ms"
        )


if __name__ == "__main__":
    main()
