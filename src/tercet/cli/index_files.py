"""``tercet index export`` and ``import``: the candidates of an index, with their vectors, as files."""

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.build_source import build_source, check_out
from tercet.cli.index import (
    IndexArgument,
    NewAddressOption,
    NewFolderOption,
    open_or_create,
    opened,
    place_of,
    wants_lexical,
)
from tercet.cli.options import OverwriteOption, PrecisionOption, spinner
from tercet.cli.progress import counting
from tercet.errors import InputError, InterruptedRunError, TercetError
from tercet.settings.index import Storage


def export(
    path: IndexArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write: .jsonl, .parquet, .npy or .faiss.")
    ],
    vectors: Annotated[
        Path | None,
        typer.Option(help="JSONL: also write the vectors, in the same order, to this .npy file."),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write the candidates of an index to a file that other programs read.

    A JSONL file has id, text and metadata of each candidate, and index build can read it. A Parquet file has
    the vectors too, as the column vector. An .npy or .faiss file has the vectors; the candidates are in a
    JSONL file beside it. index import reads the last three.

    Example: tercet index export faq.tercet -o faq.parquet
    """
    if out.suffix == ".jsonl":
        with spinner("exporting"), opened(path) as store:
            count = store.export(out, vectors=vectors, overwrite=overwrite)
        typer.echo(f"{out}: {count:,} candidates" + (f", vectors in {vectors}" if vectors else ""))
        return
    if vectors is not None:
        raise InputError(f"--vectors belongs to a .jsonl file, and {out.name} has the vectors already")
    _check_suffix(out)
    from tercet.vector_files import export_vectors

    with spinner("exporting"), opened(path) as store:
        count = export_vectors(store, out, overwrite=overwrite)
    typer.echo(f"{out}: {count:,} candidates with their vectors")


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="A .parquet, .npy or .faiss file, or a folder of Parquet files such as tercet bulk encode "
            "writes.",
            metavar="FILE",
        ),
    ],
    out: NewFolderOption = None,
    to: NewAddressOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="The model that made the vectors. Default: the one that the file names.",
            metavar="NAME",
        ),
    ] = None,
    column: Annotated[str, typer.Option(help="Parquet: the column with the texts.")] = "text",
    id_column: Annotated[str, typer.Option(help="Parquet: the column with the ids.")] = "id",
    vector_column: Annotated[str, typer.Option(help="Parquet: the column with the vectors.")] = "vector",
    precision: PrecisionOption = "fp32",
    storage: Annotated[Storage, typer.Option(help="Data type of the stored vectors.")] = "float32",
    lexical: Annotated[
        bool | None,
        typer.Option(help="Also build a lexical index (BM25).", show_default="if tantivy is installed"),
    ] = None,
) -> None:
    """Create an index from vectors that exist, without encoding the texts again.

    The same command resumes an interrupted import. A file of another program does not say which model made
    its vectors: name it with --model.

    Example: tercet index import faq.parquet -o faq.tercet
    """
    from tercet.files.digest import path_digest
    from tercet.interchange.files import open_vector_files
    from tercet.settings.interchange import VectorColumns
    from tercet.vector_files import import_vectors, model_of

    columns = VectorColumns(id=id_column, text=column, vector=vector_column)
    vectors = open_vector_files(file, columns)
    place = place_of(out, to)
    lexical = wants_lexical(place, lexical)
    name = build_source(
        str(file),
        digest=path_digest(file),
        columns=[column, id_column, vector_column],
        storage=storage,
        lexical=lexical,
    )
    is_new = check_out(place, name)
    source = model_of(vectors, model)
    with spinner(f"loading {source}"):
        retriever = open_or_create(
            place, name, str(source), is_new=is_new, precision=precision, storage=storage, lexical=lexical
        )
    try:
        with counting("importing", total=vectors.count) as advance:
            import_vectors(vectors, retriever, name=name, on_progress=advance)
        with spinner("compacting"):
            retriever.compact()
        retriever.store.set_metadata({"finished": True, "text_columns": None})
    except TercetError:
        if is_new and not len(retriever):  # a typo must not leave a folder behind
            retriever.store.delete()
        raise
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"stopped with {len(retriever):,} candidates, which are stored: run the same command to resume"
        ) from None
    typer.echo(f"{retriever.name}: {len(retriever):,} candidates")


def _check_suffix(out: Path) -> None:
    from tercet.interchange.files import KINDS

    if out.suffix.lower() not in KINDS:
        raise InputError(f"give a name that ends in .jsonl, {', '.join(KINDS)}, got {out.name}")
