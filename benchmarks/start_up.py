"""Time and memory of a command from its start to its answer, in both runtimes, in interleaved rounds.

python benchmarks/start_up.py
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from machine import machine

RANK = ("rank", "My card was declined", "-c", "sample:faq.en", "--column", "question")
COMMANDS = {f"tercet rank, model {name}": (*RANK, "--model", name) for name in ("bi", "poly", "cross")}
RUNTIMES = ("openvino", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cases = [(name, runtime) for name in COMMANDS for runtime in RUNTIMES]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {case: [] for case in cases}
    for _ in range(options.rounds + 1):  # the first round fills the file cache
        for name, runtime in cases:
            found[name, runtime].append(run(COMMANDS[name], runtime))
    print(f"{machine()}; {options.rounds} rounds, interleaved\n")
    print("| command | runtime | seconds (spread) | memory, MB |")
    print("|---|---|---:|---:|")
    for (name, runtime), runs in found.items():
        seconds = [each for each, _ in runs[1:]]
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        memory = max(each for _, each in runs)
        print(f"| `{name}` | {runtime} | {statistics.median(seconds):.2f} ({spread}) | {memory:.0f} |")


def run(command: tuple[str, ...], runtime: str) -> tuple[float, float]:
    """Seconds and megabytes of one process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "tercet", *command],
        env={**os.environ, "TERCET_RUNTIME": runtime},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the command failed with status {status}")
    return time.perf_counter() - began, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
