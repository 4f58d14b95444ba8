"""``tercet encode``: the vectors of many texts, in a file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

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
from tercet.cli.progress import counting
from tercet.config import SIDES, Side
from tercet.data.columns import contexts as read_contexts
from tercet.data.columns import texts as read_texts
from tercet.files import check_free
from tercet.inputs import check_choice


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
    with counting("encoding", total=number_of_rows(texts, file_format)) as advance:
        written = scorer.encode(
            stream,
            out,
            side=cast("Side", side),
            overwrite=overwrite,
            on_progress=advance,
        )
    if as_json:
        typer.echo(json.dumps(asdict(written) | {"path": str(written.path)}))
        return
    cut = f"; {written.cut} were longer than the model reads" if written.cut else ""
    typer.echo(f"{written.path}: {written.count} vectors of {written.width}{cut}")
