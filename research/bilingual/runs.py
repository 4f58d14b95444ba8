"""What all trainings share: settings, the clock, the learning rate, results."""

import argparse
import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

Settings = TypeVar("Settings")
Item = TypeVar("Item")
REPORT_EVERY = 200


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--work", type=Path, required=True, help="folder of intermediate files and results")
    parser.add_argument("--small", action="store_true", help="a dry run: few cases in evaluation")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="change a setting")


def parse_settings(kind: type[Settings], changes: Iterable[str]) -> Settings:
    """The settings with changes such as ``seed=1`` or ``name="a"``."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in known:
            raise SystemExit(f"unknown setting {name!r}: choose from {', '.join(sorted(known))}")
        values[name] = json.loads(value)
    return kind(**values)


def seeded(seed: int) -> np.random.Generator:
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def steps(seconds: float, max_steps: int) -> Iterator[tuple[int, float]]:
    """Numbers of steps and the done share of the training, until the time or the steps are used up."""
    began, step = time.time(), 0
    while (done := max((time.time() - began) / seconds, step / max_steps)) < 1:
        yield step, done
        step += 1


def prefetched(make: Callable[[], Item], size: int = 3) -> Iterator[Item]:
    """What ``make`` returns, again and again, made ahead in a thread with a stream of its own on the GPU."""
    ready: queue.Queue[Item | Exception] = queue.Queue(size)
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # the thread reads what other streams have made

    def produce() -> None:
        with torch.cuda.stream(torch.cuda.Stream()) if torch.cuda.is_available() else nullcontext():
            while True:
                try:
                    ready.put(make())
                except Exception as error:  # raised again where the item is wanted
                    ready.put(error)
                    return

    threading.Thread(target=produce, daemon=True).start()
    while True:
        item = ready.get()
        if isinstance(item, Exception):
            raise item
        yield item


class Schedule:
    """Linear warm-up over a share of the training and at least some steps, then linear decay to 0."""

    def __init__(self, optimizer: torch.optim.Optimizer, *, warmup: float, min_steps: int) -> None:
        self.optimizer, self.warmup, self.min_steps = optimizer, warmup, min_steps
        self.peaks = [group["lr"] for group in optimizer.param_groups]

    def update(self, step: int, done: float) -> None:
        factor = min(done / self.warmup, (1 - done) / (1 - self.warmup), (step + 1) / self.min_steps, 1.0)
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            group["lr"] = peak * max(factor, 0.0)


class LossLog:
    """Prints mean losses now and then."""

    def __init__(self, name: str) -> None:
        self.name, self.began = name, time.time()
        self.totals: dict[str, Tensor] = {}
        self.steps = 0

    def add(self, losses: dict[str, Tensor]) -> None:
        self.steps += 1
        for name, loss in losses.items():
            self.totals[name] = self.totals.get(name, torch.zeros_like(loss)) + loss.detach()
        if self.steps % REPORT_EVERY == 0:
            means = {name: round(float(total) / REPORT_EVERY, 4) for name, total in self.totals.items()}
            print(self.name, self.steps, f"{self.seconds:.0f} s", means, flush=True)
            self.totals = {}

    @property
    def seconds(self) -> float:
        return time.time() - self.began


def write_result(work: Path, **row: Any) -> None:
    """Append a row to results.jsonl."""
    line = json.dumps(row, ensure_ascii=False, default=str)
    with (work / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)


def read_results(work: Path, kind: str) -> list[dict[str, Any]]:
    path = work / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if row["kind"] == kind]
