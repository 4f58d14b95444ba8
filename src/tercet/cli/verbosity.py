"""``-q`` and ``-v``: what a command writes to standard error, and how every command gets the options."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from enum import IntEnum
from time import perf_counter
from typing import Annotated, Any

import typer

from tercet.cli.whole_numbers import check_whole_numbers

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


class Verbosity(IntEnum):
    """What is written to standard error beside errors."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


LEVEL: ContextVar[Verbosity] = ContextVar("verbosity", default=Verbosity.NORMAL)

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print settings, model, device and timings.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.", hidden=True)]
SHARED: dict[str, Any] = {"quiet": QuietOption, "verbose": VerboseOption, "debug": DebugOption}


def is_quiet() -> bool:
    """Whether -q is given."""
    return LEVEL.get() is Verbosity.QUIET


def is_verbose() -> bool:
    """Whether -v is given."""
    return LEVEL.get() is Verbosity.VERBOSE


def detail(message: str) -> None:
    """Print a message to standard error if -v is given."""
    if is_verbose():
        typer.echo(message, err=True)


def set_verbosity(*, quiet: bool, verbose: bool) -> None:
    """Take the options into account; without any, nothing changes."""
    if (quiet and verbose) or (quiet and is_verbose()) or (verbose and is_quiet()):
        raise typer.BadParameter("-q and -v exclude each other: give one of them")
    if quiet or verbose:
        LEVEL.set(Verbosity.QUIET if quiet else Verbosity.VERBOSE)


def share_options(app: typer.Typer) -> None:
    """Give -q and -v to every command, so that they are accepted after its name too."""
    for command in _commands(app):
        if command.callback is not None:
            command.callback = _with_shared_options(command.callback)


def _commands(app: typer.Typer) -> Iterator[Any]:
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance)


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with more options. Ctrl-C ends it with status 130, and -v shows its settings and time."""
    signature = inspect.signature(command)
    name = command.__name__.replace("_", "-")

    @functools.wraps(command)
    def run(*, quiet: bool, verbose: bool, debug: bool, **given: Any) -> None:
        set_verbosity(quiet=quiet, verbose=verbose)
        settings = (f"{option}={value}" for option, value in given.items() if value is not None)
        detail(f"{name}: {', '.join(settings)}")
        check_whole_numbers(given)
        start = perf_counter()
        try:
            command(**given)
        except KeyboardInterrupt:
            typer.echo(err=True)  # the shell's prompt starts on a line of its own
            raise typer.Exit(INTERRUPTED) from None
        detail(f"{name}: {perf_counter() - start:.1f} s in all")

    shared = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=False)
        for option, annotation in SHARED.items()
    ]
    run.__annotations__ = command.__annotations__ | SHARED
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *shared]
    )
    return run
