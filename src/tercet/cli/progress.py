"""Progress on standard error: bars on a terminal, a line every few seconds elsewhere, nothing with -q."""

import sys
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import typer

from tercet.cli.console import SafeConsole, escaped_streams, printable
from tercet.cli.verbosity import detail, is_quiet, is_verbose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import ProgressColumn

    from tercet.training.reporter import Reporter

    Advance = Callable[[int], None]

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 10.0
"""How often a line is written where standard error is not a terminal; the first comes after as long."""


def report_if_terminal(message: str) -> None:
    """Print a message to standard error if it is a terminal, or if -v is given; never with -q."""
    if (sys.stderr.isatty() or is_verbose()) and not is_quiet():
        typer.echo(message, err=True)


@contextmanager
def spinner(what: str) -> "Iterator[None]":
    """A spinner, if standard error is a terminal; with -v also the time that it took."""
    start = perf_counter()
    if is_quiet() or not sys.stderr.isatty():
        yield
    else:
        from rich.text import Text

        with SafeConsole(stderr=True).status(Text(printable(what))), escaped_streams():
            yield
    detail(f"{what}: {perf_counter() - start:.1f} s")


def track(items: "Iterable[Item]", *, total: int, what: str) -> "Iterator[Item]":
    """The items, with their progress."""
    with counting(what, total=total) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def counting(what: str, *, total: int | None) -> "Iterator[Advance]":
    """A function to call with the number of items just done; count, rate and remaining time are shown."""
    lines = ProgressLines(what, total=total)
    if is_quiet():
        yield lambda done: None
    elif sys.stderr.isatty():
        with _bar(lines) as advance:
            yield advance
    else:
        yield lines.write_if_due
    detail(lines.summary())


@contextmanager
def watching(what: str, *, total: int | None = None) -> "Iterator[None]":
    """As ``counting``, of the texts or pairs that models process meanwhile."""
    from tercet.encoders.batches import observing_batches

    with counting(what, total=total) as advance, observing_batches(advance):
        yield


class ProgressLines:
    """Lines about how much is done, how fast, and how long the rest takes.

    Args:
        already: items that were done before, which do not count for the rate.
        clock: the time in seconds, from any start.
    """

    def __init__(
        self,
        what: str,
        *,
        total: int | None,
        already: int = 0,
        clock: "Callable[[], float]" = perf_counter,
    ) -> None:
        self.what = what
        self.total = total
        self.done = already
        self._already = already
        self._clock = clock
        self._start = self._last = clock()

    def count(self, done: int) -> None:
        """Add the number of items just done."""
        self.done += done

    def write_if_due(self, done: int, note: str = "") -> None:
        """Count items, and print a line if the last one is long enough ago."""
        self.count(done)
        now = self._clock()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            typer.echo(self.line() + note, err=True)

    def line(self) -> str:
        """Such as ``encoding: 12,000 of 60,000, 850/s, 56 s left``."""
        rate = self._rate()
        if self.total is None or self.total < self.done:  # the total may be an estimate
            return f"{self.what}: {self.done:,}, {per_second(rate)}"
        left = duration((self.total - self.done) / rate) if rate else "unknown time"
        return f"{self.what}: {self.done:,} of {self.total:,}, {per_second(rate)}, {left} left"

    def summary(self) -> str:
        """Such as ``encoding: 60,000 in 71 s, 850/s``."""
        seconds = self._clock() - self._start
        return f"{self.what}: {self.done:,} in {duration(seconds)}, {per_second(self._rate())}"

    def _rate(self) -> float:
        return (self.done - self._already) / max(self._clock() - self._start, 1e-9)


def per_second(rate: float) -> str:
    """A rate, with a decimal if it is small."""
    if 0 < rate < 1:
        return f"{1 / rate:.1f} s each"
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def duration(seconds: float) -> str:
    """A time in the two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole >= 10 else f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


@contextmanager
def _bar(lines: "ProgressLines") -> "Iterator[Advance]":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    known = () if lines.total is None else (TimeRemainingColumn(), "left")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _rate(),
        *known,
    )
    console = SafeConsole(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar, escaped_streams():
        task = bar.add_task(printable(lines.what), total=lines.total)

        def advance(done: int) -> None:
            lines.count(done)
            bar.advance(task, done)

        yield advance


def _rate() -> "ProgressColumn":
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        """Items per second."""

        def render(self, task: Task) -> Text:
            average = task.completed / task.elapsed if task.elapsed else 0.0
            return Text(per_second(task.speed or average) if task.completed else "")

    return Rate()


@contextmanager
def step_progress() -> "Iterator[Reporter]":
    """A reporter that shows training steps, with the dev metrics between them."""
    from tercet.training.distributed import is_first_process
    from tercet.training.reporter import Reporter

    if is_quiet() or not is_first_process():  # only one process reports
        yield Reporter(stoppable=True)
    elif sys.stderr.isatty():
        with _step_bar() as reporter:
            yield reporter
    else:
        yield _step_lines()


def _step_lines() -> "Reporter":
    from tercet.training.reporter import Reporter

    lines: list[ProgressLines] = []

    def progress(done: int, steps: int, metrics: dict[str, float]) -> None:
        if not lines or lines[0].total != steps or done < lines[0].done:  # another training
            lines[:] = [ProgressLines("step", total=steps, already=done)]
        loss = f", loss {metrics['loss']:.4f}" if "loss" in metrics else ""
        lines[0].write_if_due(done - lines[0].done, loss)
        _print_dev(done, steps, metrics, lambda message: typer.echo(message, err=True))

    return Reporter(report=lambda message: typer.echo(message, err=True), progress=progress, stoppable=True)


@contextmanager
def _step_bar() -> "Iterator[Reporter]":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from tercet.training.reporter import Reporter

    console = SafeConsole(stderr=True, highlight=False)
    columns = (
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(),
        _rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console) as bar, escaped_streams():
        task = bar.add_task("training", total=None, visible=False, loss="")

        def progress(done: int, steps: int, metrics: dict[str, float]) -> None:
            bar.update(task, completed=done, total=steps, visible=done < steps)
            if "loss" in metrics:
                bar.update(task, loss=f"loss {metrics['loss']:.4f}")
            _print_dev(done, steps, metrics, lambda message: console.print(message))

        def report(message: str) -> None:
            console.print(message, style="dim")

        yield Reporter(report=report, progress=progress, stoppable=True)


def _print_dev(done: int, steps: int, metrics: dict[str, float], write: "Callable[[str], None]") -> None:
    dev = [
        f"{name.removeprefix('eval_')} {value:.4f}"
        for name, value in metrics.items()
        if name.startswith("eval_")
    ]
    if dev:
        write(f"step {done} of {steps}: dev {', '.join(dev)}")
