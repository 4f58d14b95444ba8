"""``tercet encode``: texts to a file of vectors."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.input_files import checked_first, input_files
from tercet.cli.options import (
    SOURCE_HELP,
    DelimiterOption,
    DualModelOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    OverwriteOption,
    PrecisionOption,
    SkipEmptyOption,
    TextColumnsOption,
    open_dual,
)
from tercet.cli.progress import counting
from tercet.files.atomic import check_free
from tercet.files.structured import json_text
from tercet.settings.models import Side


def encode(
    texts: Annotated[str, typer.Argument(help=f"The texts. {SOURCE_HELP}", metavar="FILE")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The .npy file to write (read it with numpy.load).", metavar="FILE"),
    ],
    column: TextColumnsOption = None,
    side: Annotated[
        Side, typer.Option(help="Encode the texts as contexts or as candidates (tower and prompt).")
    ] = "candidate",
    normalize: Annotated[bool, typer.Option("--normalize", help="Divide each vector by its norm.")] = False,
    dimensions: Annotated[
        int | None,
        typer.Option(
            help="Keep only the first N dimensions, for models trained with a Matryoshka loss.", metavar="N"
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    model: DualModelOption = "bi",
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonOption = False,
) -> None:
    """Write the embedding of each text to a .npy file, in constant memory.

    Example: tercet encode sample:faq.en --column answer -o answers.npy
    """
    check_free(out, overwrite=overwrite)  # before the model is loaded
    files = input_files(file_format, delimiter=delimiter, encoding=encoding, skip_empty=skip_empty)
    read = files.contexts if side == "context" else files.texts
    stream = (text for text, _ in checked_first(texts, lambda: read(texts, column)))
    scorer = open_dual(model, precision)
    with counting("encoding", total=files.count(texts)) as advance:
        written = scorer.encode_to_file(
            stream,
            out,
            side=side,
            normalize=normalize,
            dimensions=dimensions,
            overwrite=overwrite,
            on_progress=advance,
        )
    if as_json:
        typer.echo(json_text(asdict(written) | {"path": str(written.path)}))
        return
    truncated = f"; {written.truncated} texts were truncated" if written.truncated else ""
    typer.echo(f"{written.path}: {written.count} vectors of {written.width} dimensions{truncated}")
