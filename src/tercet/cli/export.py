"""``tercet export``: a model folder for fast inference on CPUs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli.input_files import checked_first, input_files
from tercet.cli.options import (
    DelimiterOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    SkipEmptyOption,
    TextColumnsOption,
    model_names,
)
from tercet.cli.progress import spinner
from tercet.files.atomic import check_free
from tercet.files.structured import json_text
from tercet.inputs import check_choice

if TYPE_CHECKING:
    from tercet.formats.export import Exported

MAX_TEXTS = 5000
"""Texts that are read of a file; more change the ranges little."""


def export(
    model: Annotated[
        str,
        typer.Argument(
            help="The model: bi, bi-ko, poly, cross, a model folder, or a Hugging Face id.",
            metavar="MODEL",
            autocompletion=model_names,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to create.", metavar="FOLDER")],
    precision: Annotated[
        Literal["int8"], typer.Option("--precision", help="The precision of the export: int8.")
    ] = "int8",
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            help="Texts like those that the model will read, at least 50: a file, - or sample:NAME. The "
            f"first {MAX_TEXTS:,} are used. Default: tercet's sample data in the languages that the model "
            "can read.",
            metavar="FILE",
        ),
    ] = None,
    column: TextColumnsOption = None,
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonOption = False,
) -> None:
    """Write an int8 model for CPUs, with what int8 costs and gains.

    The texts set the range of each activation; one in five of them measures the result instead. The folder
    of a packaged model has 0.1 to 0.3 MB, that of another model also contains the model.

    Example: tercet export bi -o bi-int8 --precision int8
    """
    check_free(out)
    check_choice("--precision", precision, ("int8",))
    files = input_files(file_format, delimiter=delimiter, encoding=encoding, skip_empty=skip_empty)
    given = None
    if calibrate is not None:
        stream = (text for text, _ in checked_first(calibrate, lambda: files.texts(calibrate, column)))
        given = [text for text, _ in zip(stream, range(MAX_TEXTS), strict=False)]
    from tercet.formats.export import export_int8

    with spinner("calibrating"):
        exported = export_int8(model, out, given)
    if as_json:
        typer.echo(json_text(_as_dict(exported)))
    else:
        _show(exported)


def _as_dict(exported: "Exported") -> dict[str, object]:
    cost = exported.cost._asdict()
    return {"path": str(exported.path), "share_in_int8": exported.share, **cost}


def _show(exported: "Exported") -> None:
    cost = exported.cost
    typer.echo(f"{exported.path}: {exported.share:.0%} of the linear layers in int8")
    typer.echo(
        f"on {cost.texts} held-out texts, compared with fp32: the same top 10 for {cost.same_top:.1%}, "
        f"agreement {cost.agreement[0]:.4f} (smallest {cost.agreement[1]:.4f}), {cost.speed_up:.1f}x as fast"
    )
