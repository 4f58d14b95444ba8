"""How long work looks on a terminal."""

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tercet.training.run_folder import Teller


Item = TypeVar("Item")


def say_if_watched(what: str) -> None:
    """One line on what is done now, for people; a program reads none of it."""
    if sys.stderr.isatty():
        typer.echo(what, err=True)


def track(items: "Iterable[Item]", *, total: int, what: str) -> "Iterator[Item]":
    """The items, with a bar on standard error that says how many are done, how fast, and what is left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (MofNCompleteColumn(), TextColumn(what), BarColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(items, total=total)


@contextmanager
def counting(what: str, *, total: int | None) -> "Iterator[Callable[[int], None]]":
    """What to call with how many more are done; a bar on standard error shows count, rate and time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many a second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


@contextmanager
def step_progress() -> "Iterator[Teller]":
    """A bar with rate and time left on standard error; the dev data's numbers stay above it, line by line."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from tercet.training.gather import is_first_process
    from tercet.training.run_folder import Teller

    if not is_first_process():  # of several processes, one speaks
        yield Teller(stoppable=True)
        return
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("training", total=None, visible=False, loss="")

        def tell(done: int, steps: int, numbers: dict[str, float]) -> None:
            bar.update(task, completed=done, total=steps, visible=done < steps)
            if "loss" in numbers:
                bar.update(task, loss=f"loss {numbers['loss']:.4f}")
            measured = [
                f"{name.removeprefix('eval_')} {value:.4f}"
                for name, value in numbers.items()
                if name.startswith("eval_")
            ]
            if measured:
                console.print(f"step {done} of {steps}: dev {', '.join(measured)}", markup=False)

        def say(sentence: str) -> None:
            console.print(sentence, markup=False, style="dim")

        yield Teller(say=say, progress=tell, stoppable=True)
