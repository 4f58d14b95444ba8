"""``tercet``: the commands, and what a failure looks like."""

import re
import sys
import traceback
import warnings
from typing import Annotated

import typer
from rich.console import Console

import tercet
from tercet.cli import (
    augment,
    bench,
    data,
    demo,
    encode,
    evaluate,
    explain,
    index,
    info,
    new,
    pretrain,
    rank,
    score,
    search,
    similar,
    train,
)
from tercet.errors import InterruptedRunError, TercetError

app = typer.Typer(
    name="tercet",
    help="Score a context against candidates with bi-, poly- and cross-encoders.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
COMMANDS = (
    rank.rank,
    score.score,
    explain.explain,
    encode.encode,
    search.search,
    similar.pairs,
    similar.cluster,
    train.train,
    augment.augment,
    evaluate.evaluate,
    evaluate.compare,
    evaluate.protocol,
    bench.bench,
    pretrain.pretrain,
    info.info,
    demo.demo,
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(new.new)
app.add_typer(data.data)
app.add_typer(index.index)


INTERRUPTED = 130
"""The status of a command that Ctrl-C has ended."""


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"tercet {tercet.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line; failures end with one line on standard error and status 1."""
    debug = "--debug" in sys.argv
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    warnings.showwarning = lambda message, *_, **__: errors.print(
        f"note: {message}", style="yellow", markup=False
    )
    try:
        app()  # typer itself reports wrong options, with status 2
    except InterruptedRunError as stop:
        errors.print(str(stop), style="yellow", markup=False)
        sys.exit(INTERRUPTED)
    except Exception as error:  # whatever it is, a user gets one line
        if debug:
            traceback.print_exc()
        else:
            errors.print(_one_line(error), style="red", markup=False)
        sys.exit(1)


FULL = re.compile(
    r"out of memory|ALLOC_FAILED|(?:not enough|can't allocate|cannot allocate) memory|bad_alloc",
    re.IGNORECASE,
)
"""What torch, CUDA and the system say, in errors of several types, when there is no more memory."""
WANTED = re.compile(r"tried to allocate [\d.]+ \w+|unable to allocate [\d.]+ \w+", re.IGNORECASE)


def _one_line(error: Exception) -> str:
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, TercetError):
        return f"error: {message}"
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError | OSError) and FULL.search(message)):
        said = WANTED.search(message) or FULL.search(message)
        return (
            f"error: memory is full ({said[0] if said else 'no more to be had'}): train with smaller batches "
            "(batches.examples) or in parts (batches.chunk_tokens), give fewer texts at a time, or stop what "
            "else uses the device"
        )
    return f'unexpected {type(error).__name__}: {message} (run "tercet --debug ..." for the traceback)'
