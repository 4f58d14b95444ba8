"""``tercet search``: the best candidates of an index."""

import json
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tercet.cli.index import IndexArgument, conditions, open_index
from tercet.cli.options import (
    SOURCE_HELP,
    FormatOption,
    JsonOption,
    PrecisionOption,
    open_model,
    open_rows,
    printable,
    waiting,
)
from tercet.data.columns import contexts as read_contexts
from tercet.errors import InputError
from tercet.inputs import check_contexts, check_top
from tercet.records import Context, Hits, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from tercet.retrieve import Mode, Retriever

WORD = re.compile(r"\w+")
SHORTEST_WORD = 3


def search(
    path: IndexArgument,
    context: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to look for; several arguments are the turns of a dialogue. Asked for if left out."
        ),
    ] = None,
    contexts: Annotated[
        str | None, typer.Option(help=f"Search for each context in a file. {SOURCE_HELP}", metavar="FILE")
    ] = None,
    context_column: Annotated[str | None, typer.Option(help="The column that holds the contexts.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many to show.")] = 5,
    mode: Annotated[
        str, typer.Option(help="By the model's vectors, by words, or by both.", metavar="vectors|words|both")
    ] = "vectors",
    where: Annotated[
        list[str] | None,
        typer.Option(help="Metadata that a candidate must have; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    reranker: Annotated[
        str | None, typer.Option(help="A cross-encoder that reads the best again.", metavar="NAME")
    ] = None,
    rerank: Annotated[int, typer.Option(help="How many it reads.")] = 50,
    exact: Annotated[bool, typer.Option("--exact", help="Look at every vector, even in a graph.")] = False,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model, if it has moved.")] = None,
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the best candidates of an index; without a context, ask for one after another.

    Example: tercet search faq.tercet "My parcel is late"
    """
    check_top(k)
    if context and contexts:
        raise InputError("give CONTEXT or --contexts, and only one of them")
    wanted = conditions(where or ())
    asked: list[Context] = []
    if contexts is not None:
        asked = list(read_contexts(open_rows(contexts, file_format), context_column))
    elif context:
        asked = check_contexts([context[0] if len(context) == 1 else context])
    retriever = open_index(path, model, precision)
    if reranker is not None:
        retriever.reranker = open_model(reranker, precision)

    def find(some: "Iterable[Context]") -> list[Hits]:
        with waiting(f"searching {len(retriever):,} candidates"):
            return retriever.search_many(
                some,
                k,
                mode=cast("Mode", mode),
                where=wanted,
                rerank=None if reranker is None else rerank,
                exact=exact,
            )

    if not asked and contexts is None:
        for typed in _typed():
            _show(typed, find([typed])[0], retriever, as_json=as_json)
        return
    for one, hits in zip(asked, find(asked), strict=True):
        _show(one, hits, retriever, as_json=as_json)


def _typed() -> "Iterable[str]":
    """What somebody types, line by line, until an empty one."""
    prompt = "search> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            return
        if not line:
            return
        yield line


def _show(context: Context, hits: Hits, retriever: "Retriever", *, as_json: bool) -> None:
    if as_json:
        found = {
            "context": context,
            "certainty": hits.certainty,
            "hits": [asdict(hit) for hit in hits],
        }
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = printable(context if isinstance(context, str) else " / ".join(context))
    table = Table(title=Text(shown), title_justify="left", title_style="bold", caption_justify="left")
    table.caption = f"the best {len(hits)} of {len(retriever):,}, {hits.certainty}"
    for name in ("", "score", "id"):
        table.add_column(name, justify="right", style="dim" if name == "id" else "")
    table.add_column("candidate")
    for place, hit in enumerate(hits, start=1):
        table.add_row(
            str(place), f"{hit.score:.4f}", Text(printable(hit.id)), highlighted(hit.text, as_text(context))
        )
    Console().print(table)


def highlighted(text: str, context: str) -> "Text":
    """A text in which the words of the context stand out."""
    from rich.text import Text

    words = {word for word in WORD.findall(context.casefold()) if len(word) >= SHORTEST_WORD}
    shown = Text(printable(text))
    for found in WORD.finditer(shown.plain):
        if found.group().casefold() in words:
            shown.stylize("bold green", found.start(), found.end())
    return shown
