"""``tercet search``: the best candidates of an index."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import SafeConsole, printable
from tercet.cli.hits import HitsView, hits_table
from tercet.cli.index import IndexArgument, MovedModelOption, open_index
from tercet.cli.input_files import input_files, json_line, with_columns
from tercet.cli.options import (
    SOURCE_HELP,
    DelimiterOption,
    EncodingOption,
    FormatOption,
    JsonLinesOption,
    PrecisionOption,
    SkipEmptyOption,
    open_model,
    spinner,
)
from tercet.data.columns import Rest
from tercet.errors import InputError, UnmatchedConditionError
from tercet.index.condition_text import parse_conditions
from tercet.inputs import check_context, check_count, check_k
from tercet.records import Context, Hits
from tercet.settings.index import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tercet.index.conditions import Condition
    from tercet.retrieve import Retriever
    from tercet.sharded import ShardedRetriever


def search(
    path: IndexArgument,
    context: Annotated[
        list[str] | None,
        typer.Argument(
            help="The context; several arguments are the turns of a dialogue. Default: prompt for it.",
            metavar="CONTEXT",
        ),
    ] = None,
    shard: Annotated[
        list[str] | None,
        typer.Option(
            help="Search this index of the same model too, as if all were one; repeatable.", metavar="INDEX"
        ),
    ] = None,
    contexts: Annotated[
        str | None, typer.Option(help=f"Search for each context in a file. {SOURCE_HELP}", metavar="FILE")
    ] = None,
    context_column: Annotated[str | None, typer.Option(help="The column with the contexts.")] = None,
    k: Annotated[int, typer.Option("-k", help="Number of candidates to show.")] = 5,
    mode: Annotated[
        Mode,
        typer.Option(help="Search by vectors, by BM25, or by both (reciprocal rank fusion)."),
    ] = "vectors",
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Search only candidates with this metadata: topic=cards, topic!=cards, "
            '"year>=2020" (with the quotes), "topic in cards,loans" or "topic not in cards,loans". '
            "Repeatable; all must hold.",
            metavar="CONDITION",
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            help="Also show this column of the metadata, such as answer; repeatable.", metavar="COLUMN"
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show long texts in full instead of the part that matches best.")
    ] = False,
    reranker: Annotated[
        str | None,
        typer.Option(help="A model, usually a cross-encoder, that reranks the best.", metavar="NAME"),
    ] = None,
    rerank: Annotated[
        int | None,
        typer.Option(help="Number of candidates to rerank.", show_default="50 with --reranker"),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Exhaustive search: scan all vectors instead of using the HNSW graph."),
    ] = False,
    model: MovedModelOption = None,
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonLinesOption = False,
) -> None:
    """Show the best candidates of an index. Without a context, prompt for queries.

    Several indexes of one model are searched as one with --shard.

    Example: tercet search faq.tercet "My card was declined"
    """
    from tercet.retrieve import Retriever

    check_k(k)
    if context and contexts:
        raise InputError("give CONTEXT or --contexts, and only one of them")
    _check_rerank(reranker, rerank)
    wanted = parse_conditions(where or ())
    queries: list[Context] = []
    rests: list[Rest] = []
    if contexts is not None:
        files = input_files(
            file_format,
            delimiter=delimiter,
            encoding=encoding,
            skip_empty=skip_empty,
            keep_rest=as_json,
        )
        given = list(files.contexts(contexts, context_column))
        queries, rests = [query for query, _ in given], [rest for _, rest in given]
    elif context:
        queries = [check_context(context[0] if len(context) == 1 else context)]
    second = None if reranker is None else open_model(reranker, precision)
    retriever = open_index(path, model, precision)
    searcher = _with_shards(retriever, shard or [])
    searcher.reranker = second
    opened = [retriever] if isinstance(searcher, Retriever) else searcher.shards
    _check_columns(opened, show or [])
    searched = _searched(opened, wanted)
    if not searched and not as_json:
        return
    terms = None if mode == "vectors" else retriever.store.lexical_terms
    view = HitsView(searched=searched, columns=tuple(show or ()), full=full, analyze=terms)

    def find(some: "Iterable[Context]") -> list[Hits]:
        with spinner(f"searching {len(searcher):,} candidates"):
            return searcher.search_many(some, k, mode=mode, where=wanted, rerank=rerank, exact=exact)

    if not queries and contexts is None:
        for typed in _typed():
            _show(typed, find([typed])[0], None if as_json else view)
        return
    for query, rest, hits in zip(queries, rests or [{}] * len(queries), find(queries), strict=True):
        _show(query, hits, None if as_json else view, rest)


def _check_rerank(reranker: str | None, rerank: int | None) -> None:
    """Raise if there is a reranker and nothing to rerank, or the other way round."""
    if reranker is None and rerank is not None:
        raise InputError(f"--rerank {rerank} needs a cross-encoder: add --reranker cross")
    if rerank == 0:
        raise InputError("--rerank 0 would turn the reranker off: leave out --reranker and --rerank")
    if rerank is not None:
        check_count("--rerank", rerank)


def _with_shards(retriever: "Retriever", others: "Sequence[str]") -> "Retriever | ShardedRetriever":
    """The retriever, or all shards as one."""
    if not others:
        return retriever
    from tercet.retrieve import Retriever
    from tercet.sharded import ShardedRetriever

    with spinner(f"loading {len(others)} more"):
        opened = [Retriever.open(path, retriever.scorer) for path in others]
    return ShardedRetriever([retriever, *opened])


def _check_columns(opened: "Sequence[Retriever]", columns: "Sequence[str]") -> None:
    """Raise if a column is in the metadata of no shard."""
    for column in columns:
        errors: list[UnmatchedConditionError] = []
        for each in opened:
            try:
                each.store.check_column(column)
            except UnmatchedConditionError as error:
                errors.append(error)
        if len(errors) == len(opened):
            raise errors[0]


def _searched(opened: "Sequence[Retriever]", wanted: "Sequence[Condition]") -> str:
    """What is searched, such as ``17 with topic=cards``; empty, with a note, if it is nothing."""
    total = sum(map(len, opened))
    together = " and ".join(map(str, wanted))
    if len(opened) > 1:  # the search itself says which condition no shard can meet
        return f"{total:,} in {len(opened)} shards" + (f" with {together}" if wanted else "")
    count = opened[0].store.count_where(wanted) if wanted else total
    if not count:
        what = f"no candidate has {together}" if total else f"{opened[0].name} has no candidates"
        typer.echo(printable(what), err=True)
        return ""
    return f"{count:,} with {together}" if wanted else f"{count:,}"


def _typed() -> "Iterable[str]":
    """The lines that are not blank; on a terminal ``exit`` and ``quit`` end the input, as Ctrl-D does."""
    is_typed = sys.stdin.isatty()
    if is_typed:
        typer.echo("type a query; Ctrl-D, exit or quit ends the search", err=True)
    while True:
        try:
            line = input("search> " if is_typed else "").strip()
        except EOFError:
            return
        if is_typed and line in ("exit", "quit"):
            return
        if line:
            yield line


def _show(context: Context, hits: Hits, view: HitsView | None, rest: Rest | None = None) -> None:
    """Print a table, or JSON without a view, with the other columns of the context's row."""
    if view is None:
        found = {"context": context, "certainty": hits.certainty, "hits": [asdict(hit) for hit in hits]}
        typer.echo(json_line(with_columns(found, rest or {})))
        return
    if not hits:
        typer.echo("no candidate has a word of the context (--mode vectors compares meanings)")
        return

    SafeConsole().print(hits_table(context, hits, view))
