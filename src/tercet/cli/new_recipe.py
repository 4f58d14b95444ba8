"""``tercet new-recipe``: a complete recipe for the user's own file."""

import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from tercet.cli.options import DelimiterOption, EncodingOption, OverwriteOption, parse_column
from tercet.data.guess import GuessedData, guess_data
from tercet.data.rows import Row
from tercet.data.score_column import ScoreColumn, read_score_column
from tercet.data.sources import data_root, open_source
from tercet.errors import DataError, InputError
from tercet.files.atomic import new_file
from tercet.settings.data import DataConfig, ReaderKind
from tercet.settings.default_objective import default_negatives, default_objective
from tercet.settings.files import FileConfig
from tercet.settings.models import ScorerKind
from tercet.settings.recipe import make_recipe
from tercet.settings.recipe_text import recipe_text

GUESSED_ROWS = 100
"""Rows by which reader and columns are guessed."""

MANY_ROWS = 10_000
"""Rows by which different answers are counted."""

MIN_ROWS = 20
"""Fewer rows have no two to hold out as dev data."""


def new_recipe(
    kind: Annotated[ScorerKind, typer.Argument(help="The model to train.", metavar="bi|poly|cross")],
    data: Annotated[
        str, typer.Option("--data", "-d", help="The training data: a file or sample:NAME.", metavar="FILE")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file to write. Default: KIND-NAME-OF-DATA.toml.", metavar="FILE"
        ),
    ] = None,
    reader: Annotated[
        ReaderKind | None, typer.Option(help="What a row is. Default: by the columns.", show_default=False)
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="A column that is not recognized; repeatable.", metavar="ROLE=NAME"),
    ] = None,
    overwrite: OverwriteOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    source: Annotated[
        str, typer.Option(help="The encoder to build on: bi (MiniLM), a folder, or a Hugging Face id.")
    ] = "bi",
) -> None:
    """Write a complete, commented recipe for your data file, which tercet train runs as it is.

    Reader and columns are recognized by the column names and values: question and answer, two texts and a
    score, anchor, positive and negative, candidates and label, or a column of turns.

    Example: tercet new-recipe poly --data my.csv
    """
    file = FileConfig(delimiter=delimiter, encoding=encoding)
    rows = list(islice(_rows(data, file), GUESSED_ROWS))
    columns = dict(map(parse_column, column or []))
    guessed = guess_data(rows, name=data, reader=reader, columns=columns)
    _check_rows(data, file)
    tables = _tables(kind, data, source=source, file=file, guessed=guessed)
    text = recipe_text(tables, kind=kind)
    make_recipe(tomllib.loads(text), name="the new recipe")  # an invalid value is an error now
    recipe = out or Path(f"{kind}-{Path(data.rpartition(':')[2]).name.partition('.')[0]}.toml")
    with new_file(recipe, overwrite=overwrite) as partial:
        partial.write_text(text, encoding="utf-8")
    roles = ", ".join(f"{role} = {name!r}" for role, name in guessed.columns.items())
    typer.echo(
        f"{recipe}: a {kind}-encoder, reader {guessed.reader} ({roles}), {tables['objective']['kind']}"
    )
    typer.echo(f"next: tercet train {shlex.quote(str(recipe))}")


def _rows(data: str, file: FileConfig) -> Iterator[Row]:
    """The rows as ``tercet train`` finds them."""
    return open_source(data, root=data_root(None), file=file)


def _tables(
    kind: ScorerKind, data: str, *, source: str, file: FileConfig, guessed: GuessedData
) -> dict[str, Any]:
    """The settings that differ from the defaults, or that a reader of the recipe looks for first."""
    scores = ScoreColumn()
    if guessed.reader == "pairs":
        scores = read_score_column(_rows(data, file), guessed.columns["score"])
    config = DataConfig(
        files=(data,),
        reader=guessed.reader,
        columns=guessed.renamed,
        labels=scores.labels,
        delimiter=file.delimiter,
        encoding=file.encoding,
    )
    if guessed.reader == "translations":
        raise InputError(f'translations are learnt from a teacher: run "tercet distill {source} {data}"')
    objective = default_objective(kind, config)
    if objective is None:
        raise InputError(
            f"a {kind}-encoder cannot learn from {guessed.reader}: train another kind, or change --reader"
        )
    tables: dict[str, Any] = {
        "about": f"A {kind}-encoder on {data}.",
        "model": {"kind": kind, "source": source},
        "data": {"train": asdict(config)},
        "objective": {"kind": objective, **_target_settings(scores)},
        "batches": {
            "negatives": _negatives(default_negatives(objective, config), _rows(data, file), guessed)
        },
    }
    return tables | _cross_settings(tables, scores) if kind == "cross" else tables


def _target_settings(scores: ScoreColumn) -> dict[str, Any]:
    if scores.labels:
        return {"num_labels": len(scores.labels)}
    return {"min_score": scores.min_score, "max_score": scores.max_score}


def _cross_settings(tables: dict[str, Any], scores: ScoreColumn) -> dict[str, Any]:
    """A head that starts as the encoder's cosine, or one output per label; no dropout for a small model."""
    head: dict[str, Any] = {"head": "compare"}
    if scores.labels:
        head = {"num_labels": len(scores.labels), "labels": scores.labels}
    elif tables["objective"]["kind"] == "bce":
        head["activation"] = "sigmoid"
    return {"model": {**tables["model"], **head}, "training": {"dropout": 0.0}}


def _check_rows(data: str, file: FileConfig) -> None:
    count = sum(1 for _ in _rows(data, file))
    if count < MIN_ROWS:
        raise DataError(f"{data} must have at least {MIN_ROWS} rows for training and dev data, got {count}")


def _negatives(wanted: int, rows: Iterator[Row], guessed: GuessedData) -> int:
    """The number of random negatives; fewer than wanted if the data has few different answers."""
    if not wanted or "answer" not in guessed.columns:
        return wanted
    answers = {str(row.columns.get(guessed.columns["answer"])) for row in islice(rows, MANY_ROWS)}
    return max(1, min(wanted, len(answers) // 2))
