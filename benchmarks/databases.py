"""Search in databases beside the store in a folder, and beside each database's own client doing plain search.

Vectors and codes are those of ``index_speed.py``. PostgreSQL is started from its package, on loopback. Recall
is the share of the ten best candidates of an exact search. "own client" is one query for the ten nearest
vectors of one code by the driver alone, without texts: what the database needs at least.

TERCET_DATA=FOLDER python benchmarks/databases.py --vectors vectors.npy
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from index_speed import SCALE, K, contexts, mixed, real_vectors
from machine import machine

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from tests.databases.servers import FAST, PostgresServer  # noqa: E402

from tercet.index.backends.postgres.store import PostgresStore  # noqa: E402
from tercet.index.backends.postgres.vectors import array_parameter  # noqa: E402
from tercet.index.items import Item  # noqa: E402
from tercet.index.opening import create_store  # noqa: E402
from tercet.index.protocol import CandidateStore  # noqa: E402
from tercet.records import Codes, Floats  # noqa: E402

AT_ONCE = 5000
KINDS = ("folder", "postgresql", "postgresql float16", "qdrant local")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--real", type=int, default=100_000, help="maximum number of sentences to encode")
    parser.add_argument("--vectors", type=Path, help="file of the real vectors, written if it is missing")
    parser.add_argument("--contexts", type=int, default=60)
    parser.add_argument("--kind", action="append", choices=KINDS, help="default: all")
    options = parser.parse_args()
    real = real_vectors(options.real, options.vectors)
    vectors = mixed(real, options.candidates)
    share = min(len(real), len(vectors)) / len(vectors)
    print(f"{machine()}\n{len(vectors):,} candidates, {vectors.shape[1]} wide; {share:.0%} real\n")
    print("| store | build, s | codes | search | p50, ms | p95, ms | recall@10 | certainty |")
    print("|---|---:|---:|---|---:|---:|---:|---|")
    server = PostgresServer([*FAST, "shared_buffers=1GB", "max_parallel_workers_per_gather=0"])
    try:
        with TemporaryDirectory() as folder:
            for kind in options.kind or KINDS:
                measure(kind, place(kind, server, Path(folder)), vectors, options.contexts)
    finally:
        server.close()


def place(kind: str, server: PostgresServer, folder: Path) -> str:
    """Where the index of a kind is built."""
    name = kind.replace(" ", "_")
    if kind.startswith("postgresql"):
        return f"{server.url}/{name}?build_memory=1GB"
    return f"qdrant://{folder}/{name}/{name}" if kind.startswith("qdrant") else str(folder / name)


def measure(kind: str, address: str, vectors: Floats, count: int) -> None:
    """Print the rows of a store."""
    storage = "float16" if kind.endswith("float16") else "float32"
    start = perf_counter()
    store = create_store(address, vectors.shape[1], storage=storage, lexical=False)
    for first in range(0, len(vectors), AT_ONCE):
        part = vectors[first : first + AT_ONCE]
        store.add([Item(f"c{first + at}", f"text {first + at}") for at in range(len(part))], part)
    store.compact()
    built = perf_counter() - start
    for number in (1, 64):
        codes = contexts(number, count)
        exact = timed(lambda at, codes=codes: found(store, codes.take(slice(at, at + 1)), exact=True), count)
        graph = timed(lambda at, codes=codes: found(store, codes.take(slice(at, at + 1)), exact=False), count)
        for name, (times, results) in (("exact", exact), ("graph", graph)):
            best = [set(ids) for ids, _ in exact[1]]
            recall = np.mean([len(set(ids) & few) / K for (ids, _), few in zip(results, best, strict=True)])
            p50, p95 = np.percentile(times, [50, 95])
            print(
                f"| {kind} | {built:.0f} | {number} | {name} | {p50:.1f} | {p95:.1f} | {recall:.3f} "
                f"| {results[0][1]} |",
                flush=True,
            )
    if isinstance(store, PostgresStore):
        plain(kind, store, contexts(1, count), count)
    store.close()


def found(store: CandidateStore, codes: Codes, *, exact: bool) -> tuple[list[str], str]:
    """The ids of the ten best, and how certain they are, with everything that a search reads."""

    def read(view: object) -> tuple[list[str], str]:
        (ranking,) = view.by_vectors(codes, K, scale=SCALE, exact=exact)  # type: ignore[attr-defined]
        numbers = np.array(list(ranking.scores), dtype=np.int64)
        items = view.items(numbers)  # type: ignore[attr-defined]
        return [items[number].id for number in numbers.tolist()], str(ranking.certainty)

    return store.read(read)


def plain(kind: str, store: PostgresStore, codes: Codes, count: int) -> None:
    """Print the time of a query of the driver alone, by the graph."""
    table, type_ = store.place.table("_vectors"), store.settings.kind
    query = f"SELECT number FROM {table} ORDER BY embedding <#> (%s::{type_}[])[1] LIMIT {K}"

    def once(at: int) -> None:
        store._connections.run(
            lambda connection: connection.execute(
                query.encode(), [array_parameter(connection, type_, codes.vectors[at])]
            ).fetchall()
        )

    p50, p95 = np.percentile(timed(once, count)[0], [50, 95])
    print(f"| {kind}, own client | | 1 | graph, ef 40 | {p50:.1f} | {p95:.1f} | | |", flush=True)


def timed(call: Callable[[int], object], count: int) -> tuple[list[float], list[object]]:
    """Milliseconds and results of ``call`` for each context, after a few that are not counted."""
    for at in range(min(3, count)):
        call(at)
    times, results = [], []
    for at in range(count):
        start = perf_counter()
        results.append(call(at))
        times.append(1000 * (perf_counter() - start))
    return times, results


if __name__ == "__main__":
    main()
