"""``tercet index``: candidates that are encoded once, stored in a folder or a database, and searched."""

import warnings
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.build_source import build_source, check_out
from tercet.cli.console import printable
from tercet.cli.input_files import checked_first, input_files
from tercet.cli.options import (
    SOURCE_HELP,
    CandidateColumnsOption,
    ChunkBoundaryOption,
    ChunkOption,
    ChunkOverlapOption,
    DelimiterOption,
    DualModelOption,
    EncodingOption,
    FormatOption,
    JsonLinesOption,
    JsonOption,
    PrecisionOption,
    SkipEmptyOption,
    chunk_config,
    spinner,
)
from tercet.cli.progress import counting
from tercet.errors import InputError, InterruptedRunError, TercetError
from tercet.files.structured import json_text
from tercet.inputs import listed
from tercet.settings.chunks import ChunkConfig
from tercet.settings.index import Storage
from tercet.settings.models import Precision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tercet.index.items import Item
    from tercet.index.protocol import CandidateStore
    from tercet.retrieve import Retriever

index = typer.Typer(
    name="index",
    help="Build and maintain an index of candidates for tercet search.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

SHOWN_IDS = 10
"""Ids of added candidates that an update lists."""

IndexArgument = Annotated[
    str,
    typer.Argument(
        help="The folder of the index, or its address in a database, such as postgresql://host/database/faq.",
        metavar="INDEX",
    ),
]
NewFolderOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="The folder to create, such as faq.tercet.")
]
NewAddressOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        help="The address of the index in a database instead of a folder, such as "
        "postgresql://host/database/faq.",
        metavar="ADDRESS",
    ),
]
FileArgument = Annotated[str, typer.Argument(help=f"The candidates. {SOURCE_HELP}", metavar="FILE")]
IdOption = Annotated[
    str | None,
    typer.Option("--id-column", help="The column with the ids.", show_default="id or _id, if present"),
]
MovedModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="The model that built the index, if it has moved or must be downloaded.",
        metavar="NAME",
    ),
]


@index.command()
def build(
    file: FileArgument,
    out: NewFolderOption = None,
    to: NewAddressOption = None,
    column: CandidateColumnsOption = None,
    id_column: IdOption = None,
    model: DualModelOption = "bi",
    precision: PrecisionOption = "fp32",
    storage: Annotated[Storage, typer.Option(help="Data type of the stored vectors.")] = "float32",
    lexical: Annotated[
        bool | None,
        typer.Option(help="Also build a lexical index (BM25).", show_default="if tantivy is installed"),
    ] = None,
    chunk: ChunkOption = None,
    chunk_overlap: ChunkOverlapOption = 0,
    chunk_boundary: ChunkBoundaryOption = "sentences",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Encode candidates and store them in a new index; other columns become metadata.

    The same command resumes an interrupted build.

    Example: tercet index build sample:faq.en --column question -o faq.tercet
    """
    files = input_files(file_format, delimiter=delimiter, encoding=encoding, skip_empty=skip_empty)
    place = place_of(out, to)
    lexical = wants_lexical(place, lexical)
    chunks = chunk_config(chunk, chunk_overlap, chunk_boundary)
    source = build_source(
        file,
        column=column,
        id_column=id_column,
        storage=storage,
        lexical=lexical,
        chunk=chunk,
        chunk_overlap=chunk_overlap,
        chunk_boundary=chunk_boundary,
        skip_empty=skip_empty,
        format=file_format,
        delimiter=delimiter,
        encoding=encoding,
    )
    is_new = check_out(place, source)
    candidates = checked_first(file, lambda: files.items(file, column, id_column))
    with spinner(f"loading {model}"):
        retriever = open_or_create(
            place,
            source,
            model,
            is_new=is_new,
            precision=precision,
            storage=storage,
            lexical=lexical,
            chunk=chunks,
        )
    try:
        with counting("encoding", total=files.count(file)) as advance:
            retriever.build(candidates, source=source, on_progress=advance)
        if not len(retriever):
            raise InputError(f"{file} contains no candidates")
        with spinner("compacting"):
            retriever.compact()
        retriever.store.set_metadata({"finished": True, "text_columns": column})
    except TercetError:
        if is_new and not len(retriever):  # a typo must not leave a folder behind
            retriever.store.delete()
        raise
    except KeyboardInterrupt:
        stored = f"{len(retriever):,} candidates, which are stored" if len(retriever) else "no candidates"
        raise InterruptedRunError(f"stopped with {stored}: run the same command to resume") from None
    typer.echo(f"{retriever.name}: {len(retriever):,} candidates")


@index.command()
def add(
    path: IndexArgument,
    file: FileArgument,
    column: CandidateColumnsOption = None,
    id_column: IdOption = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Replace the texts of candidates whose ids exist, and change the given metadata.",
        ),
    ] = False,
    model: MovedModelOption = None,
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Add candidates to an index, without building it again.

    Example: tercet index add faq.tercet more.jsonl --column question
    """
    files = input_files(file_format, delimiter=delimiter, encoding=encoding, skip_empty=skip_empty)
    columns = _text_columns(path, column)
    given = checked_first(file, lambda: files.items(file, columns, id_column))
    retriever = open_index(path, model, precision)
    before, known = len(retriever), _metadata_columns(retriever)
    new_ids: list[str] = []

    def noted() -> "Iterator[Item]":
        for item in given:
            if update and item.id not in retriever:
                new_ids.append(item.id)
            yield item

    count = 0
    with counting("encoding", total=files.count(file)) as advance:

        def stored(number: int) -> None:
            nonlocal count
            count += number
            advance(number)

        change = retriever.update if update else retriever.add
        change(noted(), on_progress=stored)
    if not count:
        raise InputError(f"{file} contains no candidates")
    added = len(retriever) - before
    which = f" ({listed(new_ids, most=SHOWN_IDS)})" if new_ids else ""
    changes = f"{count - added:,} updated, {added:,} added{which}" if update else f"{added:,} added"
    typer.echo(f"{retriever.name}: {changes}, {len(retriever):,} candidates")
    new_columns = sorted(_metadata_columns(retriever) - known)
    if known and new_columns:
        warnings.warn(
            f"new in the metadata: {listed(new_columns)}; the other columns are {listed(sorted(known))}",
            stacklevel=1,
        )


def _text_columns(path: str, given: list[str] | None) -> list[str] | None:
    """The columns with the texts: those given, or those that the index was built from."""
    with opened(path) as store:
        built_from: list[str] | None = store.metadata("text_columns")
        metadata = set(store.columns())
    if given and given != built_from and metadata.issuperset(given):
        raise InputError(
            f"{listed(given)} is metadata of {store.name}, not its text: name the column with the texts; "
            "the other columns of the file change the metadata"
        )
    return given or built_from


def _metadata_columns(retriever: "Retriever") -> set[str]:
    return set(retriever.store.columns())


@index.command()
def remove(
    path: IndexArgument,
    ids: Annotated[list[str], typer.Argument(help="The ids of the candidates to remove.", metavar="ID...")],
) -> None:
    """Remove candidates from an index.

    Example: tercet index remove faq.tercet 17 18
    """
    with opened(path) as store:
        store.remove(ids)
        typer.echo(f"{store.name}: {len(store):,} candidates")


@index.command("get")
def get_candidates(
    path: IndexArgument,
    ids: Annotated[list[str], typer.Argument(help="The ids of the candidates to show.", metavar="ID...")],
    as_json: JsonLinesOption = False,
) -> None:
    """Show the text and the metadata of candidates.

    Example: tercet index get faq.tercet 17 18
    """
    from tercet.index.export import as_dict

    with opened(path) as store:
        items = store.get(ids)
    for number, item in enumerate(items):
        if as_json:
            typer.echo(json_text(as_dict(item)))
            continue
        shown = [("id", item.id), ("text", item.text), *(item.metadata or {}).items()]
        width = max(len(printable(name)) for name, _ in shown)
        typer.echo("\n" * (number > 0), nl=False)
        for name, value in shown:
            text = value if isinstance(value, str) else json_text(value)
            typer.echo(f"{printable(name):{width}}  {printable(text)}")


@index.command()
def info(path: IndexArgument, as_json: JsonOption = False) -> None:
    """Show what an index contains, and which model built it.

    Example: tercet index info faq.tercet
    """
    with opened(path) as store:
        summary = store.summary()
    if as_json:
        typer.echo(json_text(summary))
        return
    for name, value in summary.items():
        typer.echo(f"{name:12} {f'{value:,}' if isinstance(value, int) else printable(str(value))}")


@index.command()
def verify(path: IndexArgument) -> None:
    """Read every byte of an index folder and list its problems; the exit status is 1 if there are any.

    Example: tercet index verify faq.tercet
    """
    with opened(path) as store:
        with spinner("reading every byte"):
            found = store.problems()
        for line in found:
            typer.echo(line)
        if found:
            typer.echo(f"to repair what can be, run: tercet index repair {store.name}")
            raise typer.Exit(1)
        typer.echo(f"{store.name}: {len(store):,} candidates, no problems")


@index.command()
def repair(
    path: IndexArgument,
    model: MovedModelOption = None,
    precision: PrecisionOption = "fp32",
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Give up candidates that are gone, and metadata that cannot be read."
        ),
    ] = False,
) -> None:
    """Discard damaged files and encode their candidates again.

    Example: tercet index repair faq.tercet
    """
    retriever = open_index(path, model, precision)
    with spinner("verifying, and encoding damaged candidates again"):
        count = retriever.repair(accept_loss=accept_loss)
    typer.echo(f"{retriever.name}: {len(retriever):,} candidates, {count:,} of them encoded again")


@index.command()
def compact(path: IndexArgument) -> None:
    """Merge all segments, drop removed vectors, and build an HNSW graph from 20,000 vectors on.

    Example: tercet index compact faq.tercet
    """
    with opened(path) as store:
        with spinner("compacting"):
            store.compact()
        typer.echo(f"{store.name}: {len(store):,} candidates")


@index.command("migration")
def print_migration(
    address: Annotated[str, typer.Argument(help="The address of the index.", metavar="ADDRESS")],
    model: DualModelOption = "bi",
    storage: Annotated[Storage, typer.Option(help="Data type of the stored vectors.")] = "float32",
    lexical: Annotated[bool, typer.Option(help="Also make the texts searchable by words.")] = True,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="For an index that is built with --chunk.")
    ] = False,
) -> None:
    """Print the SQL that creates the tables of an index, for an administrator who runs it by hand.

    tercet index build --to ADDRESS runs it too, if the user may create tables.

    Example: tercet index migration postgresql://host/database/faq
    """
    from tercet.index.opening import migration
    from tercet.retrieve import dual_encoder

    with spinner(f"loading {model}"):
        width = dual_encoder(model).width
    typer.echo(migration(address, width, storage=storage, lexical=lexical, chunked=chunks))


@contextmanager
def opened(name: str) -> "Iterator[CandidateStore]":
    """The store in a folder or at an address, without its model."""
    from tercet.index.opening import open_store

    with closing(open_store(name)) as store:
        yield store


def place_of(out: Path | None, to: str | None) -> str:
    """Where the index is built: a folder or an address."""
    from tercet.index.opening import is_address

    if (out is None) == (to is None):
        raise InputError("give --out (a folder) or --to (an address), and only one of them")
    if to is not None and not is_address(to):
        raise InputError(f"--to needs an address such as postgresql://host/database/faq, got {to!r}")
    return str(out) if to is None else to


def open_index(path: str, model: str | None, precision: Precision) -> "Retriever":
    """The index with its model, loaded behind a spinner."""
    from tercet.index.opening import display
    from tercet.retrieve import Retriever

    with spinner(f"loading {display(path)}"):
        retriever = Retriever.open(path, model, precision=precision)
    if not retriever.store.is_finished:
        warnings.warn(
            f"the build of {retriever.name} was interrupted after {len(retriever):,} candidates: run the "
            "same tercet index build command again to finish it",
            stacklevel=1,
        )
    return retriever


def wants_lexical(place: str, given: bool | None) -> bool:
    """Whether to build a lexical index; a note says so if there is none only because tantivy is missing."""
    from tercet.index.opening import has_lexical_search

    if given is None and not has_lexical_search(place):
        warnings.warn(
            "builds no lexical index (BM25), which --mode lexical and hybrid search: pip install "
            "'tercet[lexical]' before the build for one",
            stacklevel=1,
        )
    return has_lexical_search(place) if given is None else given


def open_or_create(
    place: str,
    source: str,
    model: str,
    *,
    is_new: bool,
    precision: Precision,
    storage: Storage,
    lexical: bool,
    chunk: ChunkConfig | None = None,
) -> "Retriever":
    """The unfinished index of a source, or a new one."""
    from tercet.index.opening import is_address
    from tercet.retrieve import Retriever

    if not is_new:
        return Retriever.open(place, model, precision=precision)
    where = {"index": place} if is_address(place) else {"path": place}
    created = Retriever(model, storage=storage, lexical=lexical, chunk=chunk, precision=precision, **where)
    created.store.set_metadata({"source": source})
    return created
