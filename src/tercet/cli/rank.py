"""``tercet rank``: the best candidates for a context."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import SafeConsole, one_line, printable
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
from tercet.cli.work import work_of_all
from tercet.data.rows import STDIN
from tercet.errors import DataError, InputError
from tercet.inputs import check_context, check_k, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tercet.data.columns import Rest
    from tercet.records import Context, Ranked


def rank(
    context: Annotated[
        list[str] | None,
        typer.Argument(
            help="The context; several arguments are the turns of a dialogue, oldest first.",
            metavar="CONTEXT",
        ),
    ] = None,
    candidates: Annotated[
        str, typer.Option("--candidates", "-c", help=f"The candidates. {SOURCE_HELP}", metavar="FILE")
    ] = "-",
    column: CandidateColumnsOption = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            help="A file of contexts (texts or lists of turns) to rank for, one after another.",
            metavar="FILE",
        ),
    ] = None,
    context_column: Annotated[str | None, typer.Option(help="The column with the contexts.")] = None,
    k: Annotated[int, typer.Option("-k", help="Number of candidates to show.")] = 5,
    show: Annotated[
        str | None, typer.Option(help="Also show this column of the candidates, such as answer.")
    ] = None,
    probability: ProbabilityOption = False,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonLinesOption = False,
) -> None:
    """Show the best candidates for a context.

    Example: tercet rank "My card was declined" -c sample:faq.en --column question --show answer
    """
    one_of(CONTEXT=context, **{"--contexts": contexts})
    check_k(k)
    if contexts == candidates == STDIN:
        raise InputError("contexts and candidates cannot both come from standard input: use a file for one")
    files = input_files(
        file_format,
        delimiter=delimiter,
        encoding=encoding,
        skip_empty=skip_empty,
        keep_rest=as_json or show is not None,
    )
    queries = _contexts(context, contexts, context_column, files)
    found = list(files.numbered_texts(candidates, column, what="candidates"))
    texts, rests = [text for text, _, _ in found], [rest for _, rest, _ in found]
    shown = {} if show is None else {show: _column(rests, show)}
    scorer = open_model(model, precision)
    calibration = calibration_of(scorer, model) if probability else None
    contexts_only = [query for query, _ in queries]
    with watching("ranking", total=work_of_all(scorer, contexts_only, texts)):
        rankings = scorer.rank_many(contexts_only, texts, k)
    for (query, rest), ranking in zip(queries, rankings, strict=True):
        more = {name: [values[ranked.position] for ranked in ranking] for name, values in shown.items()}
        if calibration is not None:
            chances = calibration.probabilities([ranked.score for ranked in ranking])
            more = {**more, "probability": chances.tolist()}
        of_ranking = [rests[ranked.position] for ranked in ranking]
        ranking = [replace(ranked, position=found[ranked.position][2]) for ranked in ranking]
        if as_json:
            records = _records(ranking, more, of_ranking)
            typer.echo(json_line(with_columns({"context": query, "ranking": records}, rest)))
        else:
            _show(query, ranking, total=len(texts), more=more)


def _contexts(
    context: list[str] | None, file: str | None, column: str | None, files: InputFiles
) -> "list[tuple[Context, Rest]]":
    """The contexts, each with the other columns of its row."""
    if file is not None:
        return list(files.contexts(file, column))
    turns = context or []
    return [(check_context(turns[0] if len(turns) == 1 else turns), {})]


def _column(rests: "Sequence[Rest]", name: str) -> list[str]:
    """A column of all candidates, empty where a candidate does not have it."""
    names = dict.fromkeys(other for rest in rests for other in rest)
    if name not in names:
        others = f"only {listed(names)}" if names else "and no other columns"
        raise DataError(f"--show: the candidates have no column {name!r} beside their text, {others}")
    return ["" if rest.get(name) is None else str(rest[name]) for rest in rests]


def _records(
    ranking: "Sequence[Ranked]", more: "Mapping[str, Sequence[object]]", rests: "Sequence[Rest]"
) -> list[dict[str, object]]:
    """The ranking as JSON objects. A column that is called like a field does not replace it."""
    records = []
    for number, ranked in enumerate(ranking):
        fields = asdict(ranked)
        added = {name: values[number] for name, values in more.items() if name not in fields}
        records.append(with_columns({**fields, **added}, rests[number]))
    return records


def _show(
    context: "Context",
    ranking: "Sequence[Ranked]",
    *,
    total: int,
    more: "Mapping[str, Sequence[object]]",
) -> None:
    from rich.table import Table
    from rich.text import Text

    title = printable(context if isinstance(context, str) else " / ".join(context))
    table = Table(title=Text(title), title_justify="left", title_style="bold", caption_justify="left")
    table.caption = f"the best {len(ranking)} of {total}"
    for name in ("", "score", "row"):
        table.add_column(name, justify="right", style="dim" if name == "row" else "")
    table.add_column("candidate", overflow="fold")
    for name in more:
        table.add_column(printable(name), style="dim", overflow="fold")
    for number, ranked in enumerate(ranking):
        count = ranked.candidate_truncated
        note = f" [{count} tokens truncated]" if count else ""
        table.add_row(
            str(number + 1),
            f"{ranked.score:.4f}",
            str(ranked.position),
            Text(one_line(ranked.text)) + Text(note, style="yellow"),
            *(Text(_cell(values[number])) for values in more.values()),
        )
    SafeConsole().print(table)


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else printable(str(value))
