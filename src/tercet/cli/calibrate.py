"""``tercet calibrate``: a model whose scores have probabilities and a threshold."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.options import (
    DelimiterOption,
    EncodingOption,
    JsonOption,
    SkipEmptyOption,
    model_names,
    open_model,
    parse_column,
)
from tercet.cli.progress import watching
from tercet.cli.work import work_of_pairs
from tercet.data.readers import read_examples
from tercet.extras import require_torch
from tercet.files.atomic import check_free
from tercet.files.structured import json_text
from tercet.records import Pair
from tercet.settings.calibration import Method
from tercet.settings.data import DataConfig

if TYPE_CHECKING:
    from tercet.evaluate.calibration import CalibrationReport


def calibrate(
    model: Annotated[
        str,
        typer.Argument(
            help="The model: bi, bi-ko, poly, cross, a model folder, or a Hugging Face id.",
            metavar="MODEL",
            autocompletion=model_names,
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            help="Labelled pairs that the model was not trained on: a JSONL, CSV, TSV or Parquet file, "
            "sample:NAME or hf:NAME@SPLIT with the columns context, candidate and score (1 match, 0 none).",
            metavar="FILE",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to create.", metavar="FOLDER")],
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="The column of a role (context, candidate, score), such as score=label; repeatable.",
            metavar="ROLE=NAME",
        ),
    ] = None,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    match_from: Annotated[
        float | None, typer.Option(help="For grades: pairs with at least this score are matches.")
    ] = None,
    method: Annotated[
        Method, typer.Option(help="platt: a logistic curve. isotonic: any rising curve, for many pairs.")
    ] = "platt",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the held-out pairs.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit probabilities and a threshold to labelled pairs, and save the model with them.

    30% of the pairs are held out: they measure how good the probabilities are before and after.

    Example: tercet calibrate cross --data sample:pairs.en --match-from 3 -o my-cross
    """
    check_free(out)
    columns = dict(map(parse_column, column or []))
    config = DataConfig(
        files=(data,), columns=columns, skip_empty=skip_empty, delimiter=delimiter, encoding=encoding
    )
    pairs = _pairs(config, match_from)
    require_torch("saving a calibrated model")  # fail now, not after the scoring
    from tercet.evaluate.calibration import calibrate_held_out

    scorer = open_model(model)
    work = work_of_pairs(scorer, [pair.context for pair in pairs], [pair.candidate for pair in pairs])
    with watching("scoring", total=work):
        report = calibrate_held_out(scorer, pairs, method=method, seed=seed)
    scorer.save(out)
    if as_json:
        typer.echo(json_text(_as_dict(report, out)))
    else:
        _show(report, out)


def _pairs(config: DataConfig, match_from: float | None) -> list[Pair]:
    return [
        Pair(
            example.context,
            example.candidates[0],
            example.targets[0] if match_from is None else float(example.targets[0] >= match_from),
        )
        for example in read_examples(config)
    ]


def _as_dict(report: "CalibrationReport", out: Path) -> dict[str, object]:
    return {
        "path": str(out),
        "threshold": report.calibration.threshold,
        "f1": report.calibration.f1,
        "fitted": report.fitted,
        "held_out": report.held_out,
        "before": report.before,
        "after": report.after,
    }


def _show(report: "CalibrationReport", out: Path) -> None:
    title = f"{report.held_out:,} held-out pairs"
    typer.echo(f"{title:<20} {'before':>9} {'after':>9}")
    for name, before in report.before.items():
        typer.echo(f"{name:<20} {before:9.4f} {report.after[name]:9.4f}")
    threshold = f"match from a score of {report.calibration.threshold:.4g}"
    typer.echo(f"{out}: {threshold}, F1 {report.calibration.f1:.3f} on the {report.fitted:,} fitted pairs")
