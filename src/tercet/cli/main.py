"""``tercet``: the commands, and how failures are reported."""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import tercet
from tercet.cli import (
    augment,
    bench,
    bulk,
    calibrate,
    data,
    demo,
    distill,
    encode,
    evaluate,
    explain,
    export,
    index,
    index_files,
    info,
    new,
    new_recipe,
    pretrain,
    rank,
    score,
    search,
    serve,
    shipped,
    similar,
    train,
)
from tercet.cli.console import SafeConsole, escaped_streams
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
from tercet.files.atomic import is_full_disk
from tercet.files.escapes import escaped

UsageError: type[Any] = typer.BadParameter.__bases__[0]
"""What typer raises for wrong arguments; newer versions have their own copy of click's classes."""


class Commands(TyperGroup):
    """The commands. typer quotes wrong arguments, which a shell may have taken from file names."""

    def make_context(self, *given: Any, **options: Any) -> Any:
        """As in click; a wrong argument is escaped."""
        with _escaped_usage_errors():
            return super().make_context(*given, **options)

    def invoke(self, ctx: Any) -> Any:
        """As in click; a wrong argument of a command is escaped."""
        with _escaped_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _escaped_usage_errors() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        error.message = escaped(error.message)
        raise


app = typer.Typer(
    name="tercet",
    cls=Commands,
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
    serve.serve: USE,
    similar.pairs: USE,
    similar.cluster: USE,
    evaluate.evaluate: MEASURE,
    evaluate.compare: MEASURE,
    evaluate.cross_validate: MEASURE,
    bench.bench: MEASURE,
    info.info: MEASURE,
    new_recipe.new_recipe: LEARN,
    train.train: LEARN,
    export.export: LEARN,
    distill.distill: LEARN,
    calibrate.calibrate: LEARN,
    augment.augment: LEARN,
    pretrain.pretrain: LEARN,
}
index.index.command()(index_files.export)
index.index.command("import")(index_files.import_)
for command, panel in COMMANDS.items():
    app.command(rich_help_panel=panel)(command)
app.add_typer(bulk.bulk, rich_help_panel=USE)
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


COMPLETION = "_TERCET_COMPLETE"
"""Set by the shell when it asks for completions."""
WITHOUT_BARS = ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS")
"""Bars of other libraries move the cursor, which only our own may."""


def main() -> None:
    """Run the command line; a failure prints a line to standard error and exits with status 1."""
    if COMPLETION in os.environ:  # a shell reads the output, and expects tabs
        app(prog_name="tercet")
    os.environ.update({name: os.environ.get(name, "1") for name in WITHOUT_BARS})
    with escaped_streams():
        _run()


def _run() -> None:
    debug = "--debug" in sys.argv
    errors = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    LEVEL.set(Verbosity.NORMAL)

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        if not is_quiet():
            errors.print(f"note: {message}", style="yellow")

    warnings.showwarning = show_warning
    try:
        try:
            app(prog_name="tercet")  # typer itself reports wrong options, with status 2
        finally:
            _flush_output()
    except InterruptedRunError as stop:
        errors.print(str(stop), style="yellow")
        sys.exit(INTERRUPTED)
    except Exception as error:  # every failure is one line, or a list of problems
        if debug:
            traceback.print_exc()
        else:
            errors.print(_one_line(error, _command(sys.argv[1:])), style="red")
        sys.exit(1)


def _flush_output() -> None:
    """Write what is buffered, as long as a failure can be reported."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        if isinstance(error, BrokenPipeError):  # the reader has gone
            sys.exit(1)
        raise


OUT_OF_MEMORY = re.compile(
    r"out of memory|ALLOC_FAILED|(?:not enough|can't allocate|cannot allocate) memory|bad_alloc",
    re.IGNORECASE,
)
"""Messages of torch, CUDA and the system when memory is exhausted, in several types of errors."""
AMOUNT = re.compile(r"tried to allocate [\d.]+ \w+|unable to allocate [\d.]+ \w+", re.IGNORECASE)


TRAINING = (train.train, distill.distill, pretrain.pretrain, augment.augment, evaluate.cross_validate)
"""Commands whose batches a recipe sets."""


def _command(words: Sequence[str]) -> str:
    """The name of the command among the words of the command line; options before it have no values."""
    return next((word for word in words if not word.startswith("-")), "")


def _memory_advice(command: str) -> str:
    """What needs less memory, in the terms of a command."""
    trains = command in {function.__name__.replace("_", "-") for function in TRAINING}
    if trains:
        return "lower batches.batch_size or set batches.mini_batch_tokens"
    return "give fewer or shorter texts at a time"


def _one_line(error: Exception, command: str = "") -> str:
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, DataError):
        return f"error: {str(error).strip()}"
    if isinstance(error, TercetError):
        return f"error: {message}"
    if is_full_disk(error):
        return "error: cannot write the output: no space left on the device: free some, or write elsewhere"
    is_memory = isinstance(error, RuntimeError | OSError) and OUT_OF_MEMORY.search(message)
    if isinstance(error, MemoryError) or is_memory:
        reason = AMOUNT.search(message) or OUT_OF_MEMORY.search(message)
        return (
            f"error: out of memory ({reason[0] if reason else 'no details'}): {_memory_advice(command)}, or "
            "stop other programs that use the device"
        )
    return f'unexpected {type(error).__name__}: {message} (run "tercet --debug ..." for the traceback)'
