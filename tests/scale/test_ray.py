"""Jobs on a Ray cluster of two nodes on this machine make the shards that one process makes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.dataset as ds
import pytest

pytest.importorskip("ray", reason="jobs on a cluster need tercet[ray]")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROWS = 160
COMMANDS = {
    "encode": ["texts.jsonl", "-m", "bi"],
    "encode-contexts": ["pairs.jsonl", "--side", "context", "--column", "context"],
    "score": ["pairs.jsonl", "-m", "poly", "--candidate-column", "answer"],
    "label": ["pairs.jsonl", "-m", "bi", "-m", "poly", "--column", "answer=answer"],
    "mine": ["pairs.jsonl", "--by", "model", "--negatives", "2"],
    "mine-words": ["pairs.jsonl", "--by", "bm25", "--negatives", "2"],
    "evaluate": ["choices.jsonl", "-m", "poly"],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster with two nodes of two CPUs."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": 100 << 20}
    made = Cluster()
    for number in range(2):
        for attempt in range(5):  # Ray gives a node 30 seconds to start, which a busy machine exceeds
            try:
                made.add_node(**node, **({} if number else {"include_dashboard": False}))
                break
            except Exception:
                if attempt == 4:
                    raise
    made.wait_for_nodes(timeout=120)
    yield made.address
    made.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    words = ["bird", "river", "house", "bread", "water", "light", "old", "new", "red", "blue"]
    texts = [f"{words[n % 10]} {words[n // 10 % 10]} number {n} {words[n % 7]}" for n in range(ROWS)]
    rows = {
        "texts": [{"id": f"t{n}", "text": text, "length": len(text)} for n, text in enumerate(texts)],
        "pairs": [{"context": texts[n], "answer": texts[(7 * n + 3) % ROWS]} for n in range(ROWS)],
        "choices": [
            {"context": texts[n], "candidates": [texts[(n + k) % ROWS] for k in (3, 10, 50)], "label": n % 3}
            for n in range(ROWS)
        ],
    }
    for name, each in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in each))
    return folder


def command(data: Path, kind: str, out: str, *more: str) -> list[str]:
    source, *options = COMMANDS[kind]
    given = [kind.partition("-")[0], str(data / source), "-o", str(data / out), "--rows-per-shard", "20"]
    return [sys.executable, "-m", "tercet", "-q", "bulk", *given, *options, *more]


def run(*arguments: str) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return ds.dataset(sorted(folder.glob("*.parquet"))).to_table().to_pylist()


def assert_equal(one: Any, two: Any) -> None:
    """Equal rows; numbers may differ as encodings of another batch do."""
    assert len(one) == len(two)
    for mine, its in zip(one, two, strict=True):
        assert mine.keys() == its.keys()
        for name, value in mine.items():
            if isinstance(value, float) or (
                isinstance(value, list) and any(isinstance(each, float) for each in value)
            ):
                np.testing.assert_allclose(value, its[name], atol=1e-5)
            else:
                assert value == its[name], name


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_cluster_makes_what_one_process_makes(kind: str, cluster: str, data: Path) -> None:
    run(*command(data, kind, f"{kind}-one"))
    run(*command(data, kind, f"{kind}-ray", "--address", cluster, "--workers", "3"))
    assert_equal(rows_of(data / f"{kind}-ray"), rows_of(data / f"{kind}-one"))
    one, ray = (json.loads((data / f"{kind}-{way}" / "manifest.json").read_text()) for way in ("one", "ray"))
    assert ray["finished"]
    assert ray["rows"] == ROWS
    assert [shard["first_row"] for shard in ray["shards"]] == list(range(0, ROWS, 20))
    assert ray["facts"] == one["facts"]
    assert {name: m["value"] for name, m in ray.get("metrics", {}).items()} == {
        name: pytest.approx(m["value"]) for name, m in one.get("metrics", {}).items()
    }
    assert not list(data.glob(".*answers"))


def worker_processes() -> list[psutil.Process]:
    """The actors that have a model."""
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if "ray::Worker" in " ".join(each.info["cmdline"] or [])
    ]


def wait_for_shards(folder: Path, count: int, process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        lines = folder / "shards.jsonl"
        if lines.is_file() and len(lines.read_bytes().splitlines()) >= count:
            return
        time.sleep(0.05)
    assert process.poll() is not None, "no shard within 5 minutes"


def test_dead_workers_lose_and_double_nothing(cluster: str, data: Path) -> None:
    run(*command(data, "encode", "expected"))
    running = subprocess.Popen(
        command(data, "encode", "killed", "--address", cluster, "--workers", "2"),
        stderr=subprocess.PIPE,
        text=True,
    )
    for count in (1, 3, 5):
        wait_for_shards(data / "killed", count, running)
        for worker in worker_processes()[:1]:
            worker.kill()
    assert running.wait(timeout=600) == 0, running.stderr and running.stderr.read()
    assert_equal(rows_of(data / "killed"), rows_of(data / "expected"))


def test_a_dead_driver_goes_on_where_it_stopped(cluster: str, data: Path) -> None:
    run(*command(data, "encode", "expected-2"))
    arguments = command(data, "encode", "driver", "--address", cluster, "--workers", "2")
    for count in (1, 4):
        running = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        wait_for_shards(data / "driver", count, running)
        running.kill()
        running.wait()
    before = {file.name: file.stat().st_mtime_ns for file in (data / "driver").glob("*.parquet")}
    finished = [
        json.loads(line)["number"] for line in (data / "driver" / "shards.jsonl").read_text().splitlines()
    ]
    run(*arguments)
    for number in finished:
        name = f"shard-{number:06}.parquet"
        assert (data / "driver" / name).stat().st_mtime_ns == before[name]
    assert_equal(rows_of(data / "driver"), rows_of(data / "expected-2"))


def test_local_workers_need_no_cluster(data: Path) -> None:
    run(*command(data, "encode", "local", "--workers", "2"))
    assert len(rows_of(data / "local")) == ROWS


def test_an_error_of_a_worker_is_that_of_one_process(cluster: str, data: Path) -> None:
    arguments = command(data, "encode", "wrong", "--address", cluster, "-m", "cross")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "cross is a cross-encoder, which has no vectors" in done.stderr
    assert not (data / "wrong").exists()


def test_an_unreachable_cluster_is_named(data: Path) -> None:
    arguments = command(data, "encode", "nowhere", "--address", "127.0.0.1:1")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr
    assert "unexpected" not in done.stderr
