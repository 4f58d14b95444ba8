"""``tercet``: the commands, and how failures are reported."""

import re
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

import tercet
from tercet.cli import (
    augment,
    bench,
    calibrate,
    data,
    demo,
    encode,
    evaluate,
    explain,
    index,
    info,
    new,
    new_recipe,
    pretrain,
    rank,
    score,
    search,
    shipped,
    similar,
    train,
)
from tercet.cli.verbosity import (
    INTERRUPTED,
    LEVEL,
    QuietOption,
    VerboseOption,
    Verbosity,
    is_quiet,
    set_verbosity,
    share_options,
)
from tercet.errors import DataError, InterruptedRunError, TercetError

app = typer.Typer(
    name="tercet",
    help="Rank replies, answers and documents with bi-, poly- and cross-encoders.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

USE, MEASURE, LEARN = "Rank and search", "Evaluate and inspect", "Create and train"
COMMANDS: dict[Callable[..., None], str] = {
    demo.demo: USE,
    rank.rank: USE,
    score.score: USE,
    explain.explain: USE,
    encode.encode: USE,
    search.search: USE,
    similar.pairs: USE,
    similar.cluster: USE,
    evaluate.evaluate: MEASURE,
    evaluate.compare: MEASURE,
    evaluate.cross_validate: MEASURE,
    bench.bench: MEASURE,
    info.info: MEASURE,
    new_recipe.new_recipe: LEARN,
    train.train: LEARN,
    calibrate.calibrate: LEARN,
    augment.augment: LEARN,
    pretrain.pretrain: LEARN,
}
for command, panel in COMMANDS.items():
    app.command(rich_help_panel=panel)(command)
app.add_typer(index.index, rich_help_panel=USE)
app.add_typer(data.data, rich_help_panel=MEASURE)
app.add_typer(new.new, rich_help_panel=LEARN)
app.add_typer(shipped.recipes, rich_help_panel=LEARN)
app.add_typer(shipped.tasks, rich_help_panel=MEASURE)
share_options(app)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"tercet {tercet.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    set_verbosity(quiet=quiet, verbose=verbose)


def main() -> None:
    """Run the command line; a failure prints a line to standard error and exits with status 1."""
    debug = "--debug" in sys.argv
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    LEVEL.set(Verbosity.NORMAL)

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        if not is_quiet():
            errors.print(f"note: {message}", style="yellow", markup=False)

    warnings.showwarning = show_warning
    try:
        app(prog_name="tercet")  # typer itself reports wrong options, with status 2
    except InterruptedRunError as stop:
        errors.print(str(stop), style="yellow", markup=False)
        sys.exit(INTERRUPTED)
    except Exception as error:  # every failure is one line, or a list of problems
        if debug:
            traceback.print_exc()
        else:
            errors.print(_one_line(error), style="red", markup=False)
        sys.exit(1)


OUT_OF_MEMORY = re.compile(
    r"out of memory|ALLOC_FAILED|(?:not enough|can't allocate|cannot allocate) memory|bad_alloc",
    re.IGNORECASE,
)
"""Messages of torch, CUDA and the system when memory is exhausted, in several types of errors."""
AMOUNT = re.compile(r"tried to allocate [\d.]+ \w+|unable to allocate [\d.]+ \w+", re.IGNORECASE)


def _one_line(error: Exception) -> str:
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, DataError):
        return f"error: {str(error).strip()}"
    if isinstance(error, TercetError):
        return f"error: {message}"
    is_memory = isinstance(error, RuntimeError | OSError) and OUT_OF_MEMORY.search(message)
    if isinstance(error, MemoryError) or is_memory:
        reason = AMOUNT.search(message) or OUT_OF_MEMORY.search(message)
        return (
            f"error: out of memory ({reason[0] if reason else 'no details'}): give fewer texts at a time; "
            "when training, lower batches.batch_size or set batches.mini_batch_tokens; or stop other "
            "programs that use the device"
        )
    return f'unexpected {type(error).__name__}: {message} (run "tercet --debug ..." for the traceback)'
