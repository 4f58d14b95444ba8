"""Options that several commands share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tercet.config import PRECISIONS, Precision
from tercet.data.rows import FORMATS, Format, Row
from tercet.data.sample import NAMES
from tercet.data.sources import SAMPLE, open_source, rows_in
from tercet.errors import InputError

if TYPE_CHECKING:
    from tercet.models.dual import DualEncoder
    from tercet.models.load import AnyScorer

ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="bi, poly or cross (come with tercet), a model folder, or a hub id.",
        metavar="NAME",
    ),
]
PrecisionOption = Annotated[
    str, typer.Option("--precision", help=f"{' or '.join(PRECISIONS)}.", metavar="|".join(PRECISIONS))
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", help="What the file is; guessed from its name by default.", metavar="|".join(FORMATS)
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON Lines for programs.")]

SOURCE_HELP = (
    "A text (one a line), JSONL, CSV, TSV or Parquet file, also gzipped; - for standard input; "
    f"{SAMPLE}NAME for data that comes with tercet ({', '.join(NAMES)}); or hf:NAME@SPLIT."
)


def open_model(name: str, precision: str) -> "AnyScorer":
    """The model, loaded behind a moving sign of life."""
    from tercet.models.load import load

    with waiting(f"loading {name}"):
        return load(name, precision=cast("Precision", precision))


def open_dual(name: str, precision: str) -> "DualEncoder":
    """As ``open_model``, if the model makes vectors."""
    from tercet.models.dual import DualEncoder

    scorer = open_model(name, precision)
    if not isinstance(scorer, DualEncoder):
        raise InputError("a cross-encoder reads pairs and has no vectors: encode with a bi- or poly-encoder")
    return scorer


def open_rows(source: str, file_format: str | None) -> Iterator[Row]:
    """The rows of a file, of standard input, of a sample or of a Hugging Face data set."""
    return open_source(source, file_format=cast("Format | None", file_format))


def number_of_rows(source: str, file_format: str | None) -> int | None:
    """How many rows there are, or None where only reading them would tell."""
    return rows_in(source, file_format=cast("Format | None", file_format))


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner on standard error, where that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(what):
        yield


def printable(text: str) -> str:
    """``text`` in one line, with nothing in it that a terminal would obey."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def one_of(**given: object) -> None:
    """Raise unless exactly one of the options was given."""
    named = [name for name, value in given.items() if value]
    if len(named) != 1:
        choices = " or ".join(given)
        raise InputError(
            f"give {choices}, and only one of them" + (f": got {' and '.join(named)}" if named else "")
        )
