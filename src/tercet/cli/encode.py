"""``tercet encode``: the vectors of many texts, in a file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tercet.cli.options import (
    SOURCE_HELP,
    FormatOption,
    JsonOption,
    ModelOption,
    PrecisionOption,
    number_of_rows,
    open_dual,
    open_rows,
)
from tercet.config import SIDES, Side
from tercet.data.columns import contexts as read_contexts
from tercet.data.columns import texts as read_texts
from tercet.files import check_free
from tercet.inputs import check_choice

if TYPE_CHECKING:
    from rich.progress import Progress


def encode(
    texts: Annotated[str, typer.Argument(help=f"The texts. {SOURCE_HELP}", metavar="FILE")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npy file to write; numpy.load reads it.")],
    column: Annotated[str | None, typer.Option(help="The column that holds the texts.")] = None,
    side: Annotated[
        str, typer.Option(help="Which tower and prompt to use.", metavar="|".join(SIDES))
    ] = "candidate",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a vector for each text, in order; any number of texts in constant memory.

    Example: tercet encode sample:faq.en --column answer -o answers.npy
    """
    check_choice("side", side, SIDES)
    check_free(out, overwrite=overwrite)  # before a model is loaded and the texts are read
    rows = open_rows(texts, file_format)
    stream = read_contexts(rows, column) if side == "context" else read_texts(rows, column)
    scorer = open_dual(model, precision)
    with _bar() as bar:
        task = bar.add_task("encoding", total=number_of_rows(texts, file_format))
        written = scorer.encode(
            stream,
            out,
            side=cast("Side", side),
            overwrite=overwrite,
            on_progress=lambda done: bar.advance(task, done),
        )
    if as_json:
        typer.echo(json.dumps(asdict(written) | {"path": str(written.path)}))
        return
    cut = f"; {written.cut} were longer than the model reads" if written.cut else ""
    typer.echo(f"{written.path}: {written.count} vectors of {written.width}{cut}")


def _bar() -> "Progress":
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
        """Texts a second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    return Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
