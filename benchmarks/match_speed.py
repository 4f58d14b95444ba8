"""One context against 100,000 cached candidates: ``match`` against the paper's formula and the bare product.

Everything is interleaved in one run. Peaks of memory are measured in processes of their own, for two widths.
"""

import argparse
import multiprocessing
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch
from machine import machine
from rounds import ratio
from torch import Tensor

import tercet

CANDIDATES = 100_000
WIDTH = 384
PAPER, BARE, OURS = "paper's formula", "bare product", "tercet.match"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{machine()}")
    print(f"{CANDIDATES:,} candidates, {WIDTH} wide, float32; {options.rounds} rounds, interleaved\n")
    print(
        f"| codes | {PAPER}, ms | {BARE}, ms | {OURS}, ms | paper / {OURS} (spread) "
        f"| {OURS} / bare (spread) |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for codes in (16, 64, 360):
        show(codes, run(codes, options.rounds))
    print("\n| codes | width | candidates, MB | extra peak, tercet.match, MB | extra peak, paper, MB |")
    print("|---:|---:|---:|---:|---:|")
    for width in (WIDTH, 2 * WIDTH):
        ours, theirs = (extra_memory(function, 360, width) for function in (tercet.match, paper))
        print(f"| 360 | {width} | {CANDIDATES * width * 4 / 1e6:.0f} | {ours:.1f} | {theirs:.0f} |")


def inputs(codes: int, width: int) -> tuple[Tensor, Tensor]:
    """Codes ``[1, M, D]`` and candidates ``[C, D]`` as long as MiniLM's."""
    chance = torch.Generator().manual_seed(0)
    y = torch.randn(1, codes, width, generator=chance) * 5 * width**-0.5
    return y, torch.randn(CANDIDATES, width, generator=chance) * 5 * width**-0.5


def paper(codes: Tensor, candidates: Tensor) -> Tensor:
    """Attend over the codes, sum them up for each candidate, multiply."""
    weights = (candidates @ codes[0].T).softmax(dim=-1)  # [C, M]
    contexts = weights @ codes[0]  # [C, D]
    return (contexts * candidates).sum(dim=-1)


def bare(codes: Tensor, candidates: Tensor) -> Tensor:
    """The products alone."""
    return candidates @ codes[0].T


@torch.inference_mode()
def run(codes: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round."""
    given = inputs(codes, WIDTH)
    functions: dict[str, Callable[[Tensor, Tensor], Tensor]] = {PAPER: paper, BARE: bare, OURS: tercet.match}
    torch.testing.assert_close(paper(*given), tercet.match(*given)[0], rtol=1e-4, atol=1e-4)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = perf_counter()
            function(*given)
            seconds[name].append(perf_counter() - start)
    return seconds


def show(codes: int, seconds: dict[str, list[float]]) -> None:
    """One row of the table."""
    times = " | ".join(f"{statistics.median(seconds[name]) * 1e3:.0f}" for name in (PAPER, BARE, OURS))
    faster, above = ratio(seconds[PAPER], seconds[OURS]), ratio(seconds[OURS], seconds[BARE])
    print(f"| {codes} | {times} | {faster} | {above} |")


def extra_memory(function: Callable[[Tensor, Tensor], Tensor], codes: int, width: int) -> float:
    """Megabytes by which the peak of a fresh process rises while it scores."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(measure, (function.__name__, codes, width))


@torch.inference_mode()
def measure(name: str, codes: int, width: int) -> float:
    """Runs in a process of its own."""
    function = tercet.match if name == "match" else paper
    y, candidates = inputs(codes, width)
    function(y, candidates[:5000])  # libraries allocate on their first use
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = peak()
    function(y, candidates)
    return (peak() - before) / 1e3


def peak() -> int:
    """The peak of memory in kB, as Linux counts it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    main()
