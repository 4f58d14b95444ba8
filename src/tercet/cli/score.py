"""``tercet score``: how well candidates fit, without sorting them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.options import (
    SOURCE_HELP,
    FormatOption,
    JsonOption,
    ModelOption,
    PrecisionOption,
    one_of,
    open_model,
    open_rows,
    printable,
    waiting,
)
from tercet.data.columns import pairs as read_pairs
from tercet.errors import InputError
from tercet.inputs import check_candidates, check_context
from tercet.records import Context

if TYPE_CHECKING:
    from tercet.models.load import AnyScorer


def score(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="A context, then its candidates.", metavar="CONTEXT CANDIDATE..."),
    ] = None,
    pairs: Annotated[
        str | None, typer.Option(help=f"Score each row of a file instead. {SOURCE_HELP}", metavar="FILE")
    ] = None,
    context_column: Annotated[str, typer.Option(help="The column that holds the contexts.")] = "context",
    candidate_column: Annotated[
        str, typer.Option(help="The column that holds the candidates.")
    ] = "candidate",
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the score of each candidate, in the order given.

    Example: tercet score "a cat sat on the mat" "a kitten rested" "stocks fell"
    """
    one_of(CONTEXT=texts, **{"--pairs": pairs})
    left, right = (
        _from_file(pairs, file_format, context_column, candidate_column)
        if pairs
        else _from_words(texts or [])
    )
    scorer = open_model(model, precision)
    with waiting(f"scoring {len(right)} pairs"):
        names, values = _values(scorer, left, right)
    for context, candidate, row in zip(left, right, values, strict=True):
        if as_json:
            found = {"context": context, "candidate": candidate, **dict(zip(names, row, strict=True))}
            typer.echo(json.dumps(found, ensure_ascii=False))
        elif len(names) == 1:
            typer.echo(f"{row[0]:8.4f}  {printable(candidate)}")
        else:
            shown = "  ".join(f"{name} {value:.4f}" for name, value in zip(names, row, strict=True))
            typer.echo(f"{printable(shown)}  {printable(candidate)}")


def _values(
    scorer: "AnyScorer", left: list[Context], right: list[str]
) -> tuple[list[str], list[list[float]]]:
    """The score of each pair, or, from a model of classes without a score, the value of each class."""
    from tercet.models.cross import CrossEncoder

    if isinstance(scorer, CrossEncoder) and scorer.config.outputs > 1 and scorer.config.score_class is None:
        names = scorer.config.labels or [f"class {place}" for place in range(scorer.config.outputs)]
        return list(names), scorer.classify(left, right).tolist()
    return ["score"], scorer.score_pairs(left, right)[:, None].tolist()


def _from_words(words: list[str]) -> tuple[list[Context], list[str]]:
    if len(words) < 2:
        raise InputError("give a context and at least one candidate")
    candidates = check_candidates(words[1:])
    return [check_context(words[0])] * len(candidates), candidates


def _from_file(
    file: str,
    file_format: str | None,
    context_column: str,
    candidate_column: str,
) -> tuple[list[Context], list[str]]:
    rows = list(read_pairs(open_rows(file, file_format), context=context_column, candidate=candidate_column))
    return [context for context, _ in rows], [candidate for _, candidate in rows]
