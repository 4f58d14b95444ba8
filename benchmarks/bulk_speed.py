"""Bulk encoding on a Ray cluster of two local nodes, compared with the same workers without Ray.

``python benchmarks/bulk_speed.py --rows 4000 --rounds 3``

Both encode the same parts of the same rows and write the same shards. Rounds alternate. The time starts when
all workers have loaded the model. The CPU time of Ray is that of its workers and of the driver; that of its
daemons is listed apart.
"""

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from tercet.scale.encode import Encode
from tercet.scale.parts import Part, parts_of
from tercet.scale.ray_pool import ray_pool
from tercet.scale.shards import ShardFolder
from tercet.scale.work import Task
from tercet.settings.bulk import EncodeConfig, WorkersConfig

WORDS = [
    "where",
    "when",
    "how",
    "can",
    "may",
    "my",
    "the",
    "a",
    "your",
    "account",
    "card",
    "payment",
    "order",
    "parcel",
    "refund",
    "limit",
    "change",
    "open",
    "close",
]


def texts(rows: int) -> Iterator[dict[str, Any]]:
    """Questions of 4 to 20 words."""
    for n in range(rows):
        words = (WORDS[(n * (k + 7) + k * k) % len(WORDS)] for k in range(4 + n % 17))
        yield {"id": str(n), "text": f"{' '.join(words)} {n}", "metadata": {}}


def write(folder: ShardFolder, part: Part, table: Any) -> None:
    """Write a shard."""
    folder.write(table, number=part.number, first_row=part.first_row, digest=part.digest)


def cpu(processes: list[psutil.Process]) -> float:
    """CPU seconds of processes."""
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def plain_worker(
    task: Task, rows: int, size: int, own: int, of: int, out: Path, ready: Any, spent: Any
) -> None:
    """Do every ``of``-th part."""
    work = task.start("cpu")
    folder = ShardFolder(out / f"worker-{own}", {})
    with folder.writer():
        folder.check_facts(work.facts())
        ready.wait()
        before = time.process_time()
        for part in parts_of(texts(rows), size):
            if part.number % of == own:
                write(folder, part, work.run(part.records))
        spent.put(time.process_time() - before)


def without_ray(task: Task, rows: int, size: int, workers: int, out: Path) -> dict[str, float]:
    """Seconds of processes that share nothing."""
    out.mkdir()
    spawn = multiprocessing.get_context("spawn")
    ready, spent = spawn.Barrier(workers + 1), spawn.Queue()
    processes = [
        spawn.Process(target=plain_worker, args=(task, rows, size, own, workers, out, ready, spent))
        for own in range(workers)
    ]
    for process in processes:
        process.start()
    ready.wait()
    start = time.perf_counter()
    for process in processes:
        process.join()
    return {"wall": time.perf_counter() - start, "cpu": sum(spent.get() for _ in processes)}


def with_ray(task: Task, rows: int, size: int, workers: int, out: Path, address: str) -> dict[str, float]:
    """Seconds of workers on a cluster."""
    import ray

    driver = psutil.Process()
    with ray_pool(task, WorkersConfig(address=address, workers=workers)) as pool:
        while pool._opening:
            pool._wait()
        everything = list(psutil.process_iter(["cmdline", "name"]))
        actors = [p for p in everything if "ray::Worker" in " ".join(p.info["cmdline"] or [])]
        daemons = [p for p in everything if p.info["name"] in ("raylet", "gcs_server")]
        folder = ShardFolder(out, {})
        with folder.writer():
            folder.check_facts(pool.facts())
            before, before_daemons = cpu([driver, *actors]), cpu(daemons)
            start = time.perf_counter()
            for part, table in pool.run(parts_of(texts(rows), size)):
                write(folder, part, table)
            wall = time.perf_counter() - start
            result = {"wall": wall, "cpu": cpu([driver, *actors]) - before}
            result["daemons"] = cpu(daemons) - before_daemons
    assert ray is not None
    return result


def main() -> None:
    """Print the median of each way and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--rows-per-shard", type=int, default=250)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="bi")
    options = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    for _ in range(2):
        cluster.add_node(
            num_cpus=2,
            object_store_memory=100 << 20,
            include_dashboard=False,
        )
    task = Task(Encode, EncodeConfig(model=options.model))
    given = task, options.rows, options.rows_per_shard, options.workers
    plain: list[dict[str, float]] = []
    ray: list[dict[str, float]] = []
    with TemporaryDirectory() as temporary:
        for number in range(options.rounds):
            plain.append(without_ray(*given, Path(temporary, f"plain-{number}")))
            ray.append(with_ray(*given, Path(temporary, f"ray-{number}"), cluster.address))
            print(f"round {number}: without {plain[-1]}, with Ray {ray[-1]}", flush=True)
    cluster.shutdown()
    for what in ("wall", "cpu"):
        ratios = [one[what] / two[what] for one, two in zip(plain, ray, strict=True)]
        print(
            f"{what}: Ray has {statistics.median(ratios):.2f} of the speed ({min(ratios):.2f} to "
            f"{max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
