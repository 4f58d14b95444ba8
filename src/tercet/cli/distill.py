"""``tercet distill``: a language added to a sentence encoder from parallel text."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from tercet.cli.options import (
    DelimiterOption,
    DeviceOption,
    EncodingOption,
    SkipEmptyOption,
    model_names,
    parse_column,
)
from tercet.cli.train import ResumeOption, SetOption, run
from tercet.data.guess import guess_data
from tercet.data.rows import STDIN
from tercet.data.sources import open_source
from tercet.errors import InputError
from tercet.files.structured import read_toml
from tercet.settings.files import FileConfig
from tercet.settings.recipe import make_recipe
from tercet.settings.shipped import shipped_path
from tercet.settings.tables import set_value
from tercet.settings.vocabulary import VocabularyConfig

GUESSED_ROWS = 100
"""Rows by which columns are recognized."""
RECIPE = "distill"
"""The installed recipe with the settings of this command."""


def distill(
    teacher: Annotated[
        str,
        typer.Argument(
            help="The bi-encoder that the language is added to: bi, a model folder, or a Hugging Face id.",
            metavar="TEACHER",
            autocompletion=model_names,
        ),
    ],
    file: Annotated[
        str,
        typer.Argument(
            help="Parallel text: a JSONL, CSV, TSV or Parquet file, sample:NAME or hf:NAME@SPLIT, with a "
            "column of texts in the teacher's language and one of their translations.",
            metavar="FILE",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.", metavar="FOLDER")],
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="The column of a role (source, target), such as target=ko; repeatable.",
            metavar="ROLE=NAME",
        ),
    ] = None,
    pieces: Annotated[
        int,
        typer.Option(
            min=0, help="Maximum number of new word pieces. 0: keep a vocabulary that reads the language."
        ),
    ] = VocabularyConfig.pieces,
    extension: Annotated[
        bool,
        typer.Option(
            "--extension", help="Also save the model as what it adds to the teacher, in a few megabytes."
        ),
    ] = False,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    resume: ResumeOption = False,
    change: SetOption = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed. Default: 0.")] = None,
    device: DeviceOption = None,
) -> None:
    """Add a language to a bi-encoder: translations learn the vectors that the teacher has for their sources.

    A vocabulary that cannot read the language gets new word pieces. Texts in the teacher's language keep
    their tokens, and nearly their vectors. The command trains by the recipe distill ("tercet recipes show
    distill"): --set changes its settings. Ctrl-C writes a checkpoint and stops; --resume continues.

    Example: tercet distill bi sample:parallel.en-ko --column source=en --column target=ko -o runs/korean
    """
    if file == STDIN:
        raise InputError("the file is read twice, and standard input cannot be: write it to a file")
    if extension and not pieces:
        raise InputError("--extension needs new word pieces: remove it, or --pieces 0")
    how = FileConfig(delimiter=delimiter, encoding=encoding)
    rows = list(islice(open_source(file, file=how), GUESSED_ROWS))
    given = dict(map(parse_column, column or []))
    columns = guess_data(rows, name=file, reader="translations", columns=given).columns
    table = read_toml(shipped_path("recipes", RECIPE))
    table |= {"about": f"{teacher}, with the language of {file}.", "teacher": teacher}
    table["model"] = {"source": teacher}
    table["data"] = {"train": _data(file, columns, how, skip_empty=skip_empty)}
    table["vocabulary"] = {"pieces": pieces, "extension": extension}
    if not pieces:
        del table["vocabulary"]
    for assignment in change or []:
        set_value(table, assignment)
    recipe = make_recipe(table, name="tercet distill")
    if seed is not None:
        recipe = recipe.with_seed(seed)
    run(recipe, out, root=None, resume=resume, device=device)


def _data(file: str, columns: dict[str, str], how: FileConfig, *, skip_empty: bool) -> dict[str, Any]:
    """The table ``[data.train]``."""
    return {
        "files": file,
        "reader": "translations",
        "columns": columns,
        "delimiter": how.delimiter,
        "encoding": how.encoding,
        "skip_empty": skip_empty,
    }
