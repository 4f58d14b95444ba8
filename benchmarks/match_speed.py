"""One context against 100,000 cached candidates: ``match``, the paper's formula, and the bare products.

All are timed in interleaved rounds. Peak memory is measured in separate processes, for two widths.
"""

import argparse
import multiprocessing
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from machine import machine
from torch import Tensor

import tercet
from tercet.evaluate.bench.rounds import Action, Times, in_turn, ratio
from tercet.evaluate.bench.scorers import PAPER, paper_formula

CANDIDATES = 100_000
WIDTH = 384
BARE, OURS = "bare product", "tercet.match"

Match = Callable[[Tensor, Tensor], Tensor]


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
        print(row(codes, run(codes, options.rounds)))
    print("\n| codes | width | candidates, MB | extra peak, tercet.match, MB | extra peak, paper, MB |")
    print("|---:|---:|---:|---:|---:|")
    for width in (WIDTH, 2 * WIDTH):
        ours, theirs = (extra_memory(function, 360, width) for function in (tercet.match, paper_formula))
        print(f"| 360 | {width} | {CANDIDATES * width * 4 / 1e6:.0f} | {ours:.1f} | {theirs:.0f} |")


def inputs(codes: int, width: int) -> tuple[Tensor, Tensor]:
    """Codes ``[1, M, D]`` and candidates ``[C, D]`` with the norms of MiniLM's vectors."""
    rng = torch.Generator().manual_seed(0)
    y = torch.randn(1, codes, width, generator=rng) * 5 * width**-0.5
    return y, torch.randn(CANDIDATES, width, generator=rng) * 5 * width**-0.5


def dot_products(codes: Tensor, candidates: Tensor) -> Tensor:
    """``[C, M]``: the part of the work that both formulas share."""
    return candidates @ codes[0].T


@torch.inference_mode()
def run(codes: int, rounds: int) -> dict[str, Times]:
    """The times of the three functions."""
    given = inputs(codes, WIDTH)
    functions: dict[str, Match] = {PAPER: paper_formula, BARE: dot_products, OURS: tercet.match}
    times = in_turn(
        {name: Action(partial(function, *given)) for name, function in functions.items()}, rounds=rounds
    )
    torch.testing.assert_close(times[PAPER].result, times[OURS].result, rtol=1e-4, atol=1e-4)
    return times


def row(codes: int, times: dict[str, Times]) -> str:
    """One row of the table."""
    medians = " | ".join(f"{times[name].median * 1e3:.0f}" for name in (PAPER, BARE, OURS))
    faster, above = ratio(times[PAPER], times[OURS]), ratio(times[OURS], times[BARE])
    return f"| {codes} | {medians} | {faster.spread} | {above.spread} |"


def extra_memory(function: Match, codes: int, width: int) -> float:
    """Megabytes by which the peak memory of a new process rises while it scores."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(measure, (function.__name__, codes, width))


@torch.inference_mode()
def measure(name: str, codes: int, width: int) -> float:
    """``extra_memory``, in the new process."""
    function: Match = tercet.match if name == "match" else paper_formula
    y, candidates = inputs(codes, width)
    function(y, candidates[:5000])  # libraries allocate on their first use
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = peak_kilobytes()
    function(y, candidates)
    return (peak_kilobytes() - before) / 1e3


def peak_kilobytes() -> int:
    """The peak memory of this process, as Linux reports it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    main()
