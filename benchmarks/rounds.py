"""Contestants in turn, round after round, so that a slow moment hits all of them."""

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

Contestant: TypeAlias = Callable[[list[Any]], np.ndarray]


def interleaved(
    contestants: dict[str, Contestant], items: list[Any], *, rounds: int
) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Seconds of each round, and what came out of the last."""
    for contestant in contestants.values():
        contestant(items[:64])
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    results: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            start = perf_counter()
            results[name] = contestant(items)
            seconds[name].append(perf_counter() - start)
    return seconds, results


def ratio(above: Sequence[float], below: Sequence[float]) -> str:
    """Median and spread over the rounds."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"
