"""``tercet rank``: the best candidates for a context."""

import json
from dataclasses import asdict
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
from tercet.data.columns import contexts as read_contexts
from tercet.data.columns import texts as read_texts
from tercet.data.rows import STDIN
from tercet.errors import InputError
from tercet.inputs import check_contexts, check_top

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tercet.records import Context, Ranked


def rank(
    context: Annotated[
        list[str] | None,
        typer.Argument(help="The context; several arguments are the turns of a dialogue, oldest first."),
    ] = None,
    candidates: Annotated[
        str, typer.Option("--candidates", "-c", help=f"The candidates. {SOURCE_HELP}", metavar="FILE")
    ] = "-",
    column: Annotated[str | None, typer.Option(help="The column that holds the candidates.")] = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            help="Rank for each context in a file instead: text, or a list of turns.", metavar="FILE"
        ),
    ] = None,
    context_column: Annotated[str | None, typer.Option(help="The column that holds the contexts.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many to show.")] = 5,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the best candidates for a context.

    Example: tercet rank "My parcel is late" -c sample:faq.en --column answer
    """
    one_of(CONTEXT=context, **{"--contexts": contexts})
    check_top(k)
    if contexts == candidates == STDIN:
        raise InputError("contexts and candidates cannot both come from standard input: give a file for one")
    asked: list[Context] = _asked(context, contexts, context_column, file_format)
    texts = list(read_texts(open_rows(candidates, file_format), column))
    scorer = open_model(model, precision)
    with waiting(f"ranking {len(texts)} candidates"):
        rankings = scorer.rank_many(asked, texts, k)
    for one, ranking in zip(asked, rankings, strict=True):
        if as_json:
            typer.echo(
                json.dumps({"context": one, "ranking": [asdict(r) for r in ranking]}, ensure_ascii=False)
            )
        else:
            _show(one, ranking, total=len(texts))


def _asked(
    context: list[str] | None,
    file: str | None,
    column: str | None,
    file_format: str | None,
) -> "list[Context]":
    if file is not None:
        return list(read_contexts(open_rows(file, file_format), column))
    turns = context or []
    return check_contexts([turns[0] if len(turns) == 1 else turns])


def _show(context: "Context", ranking: "Sequence[Ranked]", *, total: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = printable(context if isinstance(context, str) else " / ".join(context))
    table = Table(title=Text(shown), title_justify="left", title_style="bold", caption_justify="left")
    table.caption = f"the best {len(ranking)} of {total}"
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column("row", justify="right", style="dim")
    table.add_column("candidate")
    for place, ranked in enumerate(ranking, start=1):
        cut = f" [{ranked.candidate_cut} tokens not read]" if ranked.candidate_cut else ""
        table.add_row(
            str(place),
            f"{ranked.score:.4f}",
            str(ranked.position + 1),
            Text(printable(ranked.candidate)) + Text(cut, style="yellow"),
        )
    Console().print(table)
