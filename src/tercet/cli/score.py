"""``tercet score``: the scores of candidates, in the order given."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tercet.cli.console import printable
from tercet.cli.input_files import InputFiles, input_files, json_line, with_columns
from tercet.cli.options import (
    SOURCE_HELP,
    CandidateColumnsOption,
    DelimiterOption,
    EncodingOption,
    FormatOption,
    JsonLinesOption,
    ModelOption,
    PrecisionOption,
    ProbabilityOption,
    SkipEmptyOption,
    calibration_of,
    one_of,
    open_model,
)
from tercet.cli.progress import watching
from tercet.cli.work import work_of_pairs
from tercet.errors import InputError
from tercet.inputs import check_candidates, check_context
from tercet.records import Context
from tercet.settings.models import Precision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tercet.data.columns import Rest
    from tercet.scorers.loaded import LoadedScorer


def score(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="A context, then its candidates. With -c: the context; several arguments are its turns.",
            metavar="CONTEXT CANDIDATE...",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates", "-c", help=f"Score each candidate of a file. {SOURCE_HELP}", metavar="FILE"
        ),
    ] = None,
    column: CandidateColumnsOption = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Score each row of a file, a context with its candidate.", metavar="FILE"),
    ] = None,
    context_column: Annotated[str, typer.Option(help="--pairs: the column with the contexts.")] = "context",
    candidate_column: Annotated[
        str, typer.Option(help="--pairs: the column with the candidates.")
    ] = "candidate",
    probability: ProbabilityOption = False,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonLinesOption = False,
) -> None:
    """Show the score of each candidate, in the order given.

    Example: tercet score "a cat sat on the mat" "a kitten rested" "stocks fell"
    """
    one_of(CONTEXT=texts, **{"--pairs": pairs})
    files = input_files(
        file_format,
        delimiter=delimiter,
        encoding=encoding,
        skip_empty=skip_empty,
        keep_rest=as_json,
    )
    if pairs is not None:
        if candidates is not None or column:
            raise InputError("-c and --column need a CONTEXT: with --pairs, use --candidate-column")
        given = list(files.pairs(pairs, context=context_column, candidate=candidate_column))
    else:
        given = _from_arguments(texts or [], candidates, column, files)
    _print(_scored(given, model, precision, probability=probability), as_json=as_json)


class Scored(NamedTuple):
    """A pair with its values by name, and the other columns of its row."""

    context: Context
    candidate: str
    values: dict[str, float]
    rest: "Rest"


def _scored(
    given: "list[tuple[Context, str, Rest]]", model: str, precision: Precision, *, probability: bool
) -> "Iterator[Scored]":
    """Each pair with its values by name."""
    scorer = open_model(model, precision)
    calibration = calibration_of(scorer, model) if probability else None
    left, right = [context for context, _, _ in given], [candidate for _, candidate, _ in given]
    with watching("scoring", total=work_of_pairs(scorer, left, right)):
        names, rows = _values(scorer, left, right)
    if calibration is not None:
        names = [*names, "probability"]
        chances = calibration.probabilities([row[0] for row in rows]).tolist()
        rows = [[*row, chance] for row, chance in zip(rows, chances, strict=True)]
    for (context, candidate, rest), row in zip(given, rows, strict=True):
        yield Scored(context, candidate, dict(zip(names, row, strict=True)), rest)


def _print(scored: "Iterable[Scored]", *, as_json: bool) -> None:
    for each in scored:
        if as_json:
            record = {"context": each.context, "candidate": each.candidate, **each.values}
            typer.echo(json_line(with_columns(record, each.rest)))
        elif len(each.values) == 1:
            (value,) = each.values.values()
            typer.echo(f"{value:8.4f}  {printable(each.candidate)}")
        else:
            shown = "  ".join(f"{name} {value:.4f}" for name, value in each.values.items())
            typer.echo(f"{printable(shown)}  {printable(each.candidate)}")


def _values(
    scorer: "LoadedScorer", left: list[Context], right: list[str]
) -> tuple[list[str], list[list[float]]]:
    """The score of each pair, or the value of each class for a classifier without a score."""
    from tercet.scorers.cross_scorer import CrossScorer

    if isinstance(scorer, CrossScorer) and scorer.config.num_labels > 1 and scorer.config.score_class is None:
        names = scorer.config.labels or [f"class {number}" for number in range(scorer.config.num_labels)]
        return list(names), scorer.classify(left, right).tolist()
    return ["score"], scorer.score_pairs(left, right)[:, None].tolist()


def _from_arguments(
    texts: list[str], file: str | None, column: list[str] | None, files: InputFiles
) -> "list[tuple[Context, str, Rest]]":
    """The pairs of a context with candidates from a file, or from the arguments after it."""
    if file is not None:
        context = check_context(texts[0] if len(texts) == 1 else texts)
        found = [(context, text, rest) for text, rest in files.texts(file, column)]
        check_candidates([text for _, text, _ in found])
        return found
    if column:
        raise InputError("--column names a column of a file of candidates: give -c FILE")
    if len(texts) < 2:
        raise InputError("give a context and at least one candidate, or a file of candidates (-c FILE)")
    return [(check_context(texts[0]), text, {}) for text in check_candidates(texts[1:])]
