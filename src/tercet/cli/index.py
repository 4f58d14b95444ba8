"""``tercet index``: candidates that are encoded once, kept in a folder, and searched."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tercet.cli.options import (
    SOURCE_HELP,
    FormatOption,
    JsonOption,
    ModelOption,
    PrecisionOption,
    number_of_rows,
    open_rows,
    waiting,
)
from tercet.cli.progress import counting
from tercet.data.columns import filled, text_and_rest
from tercet.errors import InputError, InterruptedRunError, OutputError, TercetError

if TYPE_CHECKING:
    from tercet.config import Precision
    from tercet.data.rows import Row
    from tercet.index.items import Item
    from tercet.index.segment import Storage
    from tercet.retrieve import Retriever

index = typer.Typer(
    name="index",
    help="Keep many candidates in a folder, and find the best of them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

IndexArgument = Annotated[Path, typer.Argument(help="The index, a folder.", metavar="INDEX")]
FileArgument = Annotated[str, typer.Argument(help=f"The candidates. {SOURCE_HELP}", metavar="FILE")]
ColumnOption = Annotated[str | None, typer.Option(help="The column that holds the candidates.")]
IdOption = Annotated[
    str | None,
    typer.Option("--id-column", help="The column that holds their ids; id by default, if there is one."),
]


@index.command()
def build(
    file: FileArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to make, such as faq.tercet.")],
    column: ColumnOption = None,
    id_column: IdOption = None,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    storage: Annotated[
        str, typer.Option(help="How vectors are kept.", metavar="float32|bfloat16|int8")
    ] = "float32",
    words: Annotated[bool, typer.Option(help="Let candidates be found by their words too.")] = True,
    file_format: FormatOption = None,
) -> None:
    """Encode candidates and keep them; the other columns are kept as metadata.

    The same command goes on with a build that was interrupted.

    Example: tercet index build sample:faq.en --column answer -o faq.tercet
    """
    rows = open_rows(file, file_format)
    new = not out.exists()
    source = _source(file, [column, id_column, storage, words])
    with waiting(f"loading {model}"):
        retriever = _begin(out, source, model, precision, storage, words=words)
    try:
        with counting("encoding", total=number_of_rows(file, file_format)) as advance:
            retriever.build(items(rows, column, id_column), source=source, on_progress=advance)
        if not len(retriever):
            raise InputError(f"{file} holds no candidates: there is nothing to search")
        with waiting("putting it together"):
            retriever.compact()
        retriever.store.note({"finished": True})
    except TercetError:
        if new and not len(retriever):  # a typing error should not leave a folder in the way
            retriever.close()
            shutil.rmtree(out)
        raise
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"stopped with {len(retriever):,} candidates, which are kept: the same command goes on"
        ) from None
    typer.echo(f"{out}: {len(retriever):,} candidates")


@index.command()
def add(
    path: IndexArgument,
    file: FileArgument,
    column: ColumnOption = None,
    id_column: IdOption = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace candidates whose ids are there already.")
    ] = False,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model, if it has moved.")] = None,
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
) -> None:
    """Put more candidates into an index, without building it again.

    Example: tercet index add faq.tercet more.jsonl --column answer
    """
    given = items(open_rows(file, file_format), column, id_column)
    retriever = open_index(path, model, precision)
    before = len(retriever)
    with counting("encoding", total=number_of_rows(file, file_format)) as advance:
        if update:
            retriever.update(given, on_progress=advance)
        else:
            retriever.add(given, on_progress=advance)
    typer.echo(f"{path}: {len(retriever):,} candidates, {before:,} before")


@index.command()
def remove(
    path: IndexArgument,
    ids: Annotated[list[str], typer.Argument(help="The ids of candidates.", metavar="ID...")],
) -> None:
    """Take candidates out of an index.

    Example: tercet index remove faq.tercet 17 18
    """
    from tercet.index.store import Store

    store = Store(path)
    store.remove(ids)
    typer.echo(f"{path}: {len(store):,} candidates")


@index.command()
def info(path: IndexArgument, as_json: JsonOption = False) -> None:
    """Show what an index holds, and which model made it.

    Example: tercet index info faq.tercet
    """
    from tercet.index.store import Store

    found = Store(path).summary()
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    for name, value in found.items():
        typer.echo(f"{name:12} {f'{value:,}' if isinstance(value, int) else value}")


@index.command()
def verify(path: IndexArgument) -> None:
    """Read every byte of an index and say what is wrong with it; the status is 1 if something is.

    Example: tercet index verify faq.tercet
    """
    from tercet.index.repair import problems
    from tercet.index.store import Store

    store = Store(path)
    with waiting("reading every byte"):
        found = problems(store)
    for line in found:
        typer.echo(line)
    if found:
        typer.echo(f"{path} can be repaired: tercet index repair {path}")
        raise typer.Exit(1)
    typer.echo(f"{path}: {len(store):,} candidates, and all is well")


@index.command()
def repair(
    path: IndexArgument,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model, if it has moved.")] = None,
    precision: PrecisionOption = "fp32",
) -> None:
    """Leave out broken files and encode their candidates again.

    Example: tercet index repair faq.tercet
    """
    retriever = open_index(path, model, precision)
    with waiting("reading every byte, and encoding what is lost"):
        made = retriever.repair()
    typer.echo(f"{path}: {len(retriever):,} candidates, {made:,} of them encoded again")


@index.command()
def compact(path: IndexArgument) -> None:
    """Put all vectors together, without what was removed; many of them in a graph that is quick to search.

    Example: tercet index compact faq.tercet
    """
    from tercet.index.store import Store

    store = Store(path)
    with waiting("putting it together"):
        store.compact()
    typer.echo(f"{path}: {len(store):,} candidates")


def items(rows: "Iterable[Row]", column: str | None, id_column: str | None) -> "Iterator[Item]":
    """A candidate from each row, with its other columns as metadata."""
    from tercet.index.items import Item

    for row in rows:
        text, rest = text_and_rest(row, column)
        key = id_column if id_column is not None else "id"
        yield Item(_taken(row, rest, key, wanted=id_column is not None), text, rest)


def _taken(row: "Row", rest: dict[str, Any], key: str, *, wanted: bool) -> str:
    if key not in rest and not wanted:
        return ""
    value = filled(row, key)
    rest.pop(key, None)
    return str(value)


def open_index(path: Path, model: str | None, precision: str) -> "Retriever":
    """The index with its model, loaded behind a moving sign of life."""
    from tercet.retrieve import Retriever

    with waiting(f"loading {path}"):
        return Retriever.open(path, model, precision=cast("Precision", precision))


def conditions(given: Iterable[str]) -> Mapping[str, Any] | None:
    """What metadata must be, from ``name=value``; a name that comes again allows any of its values."""
    found: dict[str, list[Any]] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise InputError(f"a condition is NAME=VALUE, got {each!r}")
        found.setdefault(name, []).extend(_readings(value))
    return found or None


def _readings(value: str) -> list[Any]:
    """A value as a text, and as the number or truth value that it may be."""
    try:
        other = json.loads(value)
    except ValueError:
        return [value]
    return [value, other] if isinstance(other, (int, float)) else [value]


def _begin(out: Path, source: str, model: str, precision: str, storage: str, *, words: bool) -> "Retriever":
    from tercet.retrieve import Retriever

    if not out.exists():
        made = Retriever(
            model,
            path=out,
            storage=cast("Storage", storage),
            words=words,
            precision=cast("Precision", precision),
        )
        made.store.note({"source": source})
        return made
    begun = Retriever.open(out, model, precision=cast("Precision", precision))
    if begun.store.fact("source") != source or begun.store.fact("finished"):
        raise OutputError(f"{out} exists: choose another folder, or put more in with tercet index add")
    return begun


def _source(file: str, settings: list[Any]) -> str:
    """What makes a build the same build."""
    path = Path(file)
    known = [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else [file]
    return json.dumps([*known, *settings])
