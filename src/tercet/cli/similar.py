"""``tercet pairs`` and ``tercet cluster``: similar texts of a list."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli.console import SafeConsole, one_line, printable
from tercet.cli.input_files import InputFiles, input_files, json_line
from tercet.cli.options import (
    SOURCE_HELP,
    BiModelOption,
    DelimiterOption,
    EncodingOption,
    FormatOption,
    JsonLinesOption,
    OverwriteOption,
    PrecisionOption,
    SkipEmptyOption,
    TextColumnsOption,
    open_model,
    spinner,
)
from tercet.cli.progress import counting
from tercet.errors import InputError
from tercet.files.atomic import check_free, new_file, writing
from tercet.inputs import check_count, check_threshold
from tercet.settings.models import Precision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tercet.data.columns import Rest
    from tercet.records import ClosePair, Floats

TextsArgument = Annotated[str, typer.Argument(help=f"The texts. {SOURCE_HELP}", metavar="FILE")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write the result to a JSONL file.", metavar="FILE")
]
SHOWN_PAIRS, SHOWN_CLUSTERS, SHOWN_TEXTS = 20, 10, 5


def pairs(
    file: TextsArgument,
    column: TextColumnsOption = None,
    count: Annotated[
        int | None,
        typer.Option(
            help="The maximum number of pairs.", show_default=f"{SHOWN_PAIRS}; all with --threshold"
        ),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="The minimum score of a pair.")] = None,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    model: BiModelOption = "bi",
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonLinesOption = False,
) -> None:
    """Show the most similar pairs of texts: duplicates and paraphrases.

    Without --count, --threshold means all pairs that reach it, and --out all pairs.

    Example: tercet pairs sample:faq.en --column answer --threshold 0.7 -o pairs.jsonl
    """
    from tercet.similar import closest_vectors

    if count is not None:
        check_count("count", count)
    if threshold is not None:
        check_threshold(threshold)
    if out is not None:
        check_free(out, overwrite=overwrite)
    files = input_files(
        file_format,
        delimiter=delimiter,
        encoding=encoding,
        skip_empty=skip_empty,
        keep_rest=as_json or out is not None,
    )
    texts, rests, rows, vectors = _encode(file, column, files, model=model, precision=precision)
    is_default = count is None and threshold is None and out is None
    with counting("comparing", total=len(texts)) as advance:
        found = closest_vectors(
            vectors,
            SHOWN_PAIRS if is_default else count,
            threshold=-inf if threshold is None and out is not None else threshold,
            on_progress=advance,
        )
    records = _pair_records(found, texts, rests, rows=rows)
    is_cut = is_default and len(found) < _number_of_pairs(texts)
    if out is not None:
        _write(out, records, overwrite=overwrite)
    elif as_json:
        for record in records:
            typer.echo(json_line(record))
        if is_cut:
            all_pairs = f"{len(found):,} of {_number_of_pairs(texts):,} pairs"
            typer.echo(f"{all_pairs}: give --count or --threshold, or -o FILE for all", err=True)
    else:
        shown = found if count is not None else found[:SHOWN_PAIRS]
        cut = f"; {len(shown)} of {len(found):,} shown; -o FILE writes all" if len(shown) < len(found) else ""
        _show_pairs(
            shown, texts, rows, caption=f"the closest {len(found):,} pairs of {len(texts):,} texts{cut}"
        )


def cluster(
    file: TextsArgument,
    column: TextColumnsOption = None,
    threshold: Annotated[
        float, typer.Option(help="Minimum similarity of a text to the centre of its cluster.")
    ] = 0.75,
    min_size: Annotated[int, typer.Option(help="The minimum number of texts in a cluster.")] = 2,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--map", help="Draw all texts as points in a plane, to an .html or .png file.", metavar="FILE"
        ),
    ] = None,
    layout: Annotated[
        Literal["auto", "pca", "umap"],
        typer.Option(
            help="Projection of the map: pca is fast, umap separates clusters. auto: umap from 500 texts on."
        ),
    ] = "auto",
    model: BiModelOption = "bi",
    precision: PrecisionOption = "fp32",
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: JsonLinesOption = False,
) -> None:
    """Show clusters of similar texts, largest first, each with a name: its weightiest words.

    Example: tercet cluster sample:faq.en --column answer --threshold 0.6 --map map.html
    """
    from tercet.cli.map_page import draw_map, make_map
    from tercet.index.all_pairs import communities
    from tercet.text.keywords import group_names

    check_count("min_size", min_size)
    check_threshold(threshold)
    for path in (out, picture):
        if path is not None:
            check_free(path, overwrite=overwrite)
    if picture is not None and picture.suffix not in (".html", ".png"):
        raise InputError(f"--map must be an .html or a .png file, got {picture.name}")
    files = input_files(
        file_format,
        delimiter=delimiter,
        encoding=encoding,
        skip_empty=skip_empty,
        keep_rest=as_json or out is not None,
    )
    texts, rests, rows, vectors = _encode(file, column, files, model=model, precision=precision)
    with counting("comparing", total=len(texts)) as advance:
        found = communities(vectors, threshold=threshold, min_size=min_size, on_progress=advance)
    clusters = [members.tolist() for members in found]
    names = group_names(texts, clusters)
    records: list[dict[str, object]] = [
        {
            "name": name,
            "rows": [rows[position] for position in members],
            "texts": [texts[position] for position in members],
            **_columns(members, rests),
        }
        for name, members in zip(names, clusters, strict=True)
    ]
    if picture is not None:
        with spinner("drawing"):
            drawn = make_map(vectors, texts, clusters=clusters, names=names, layout=layout)
            draw_map(picture, drawn, overwrite=overwrite)
    if out is not None:
        _write(out, records, overwrite=overwrite)
    elif as_json:
        for record in records:
            typer.echo(json_line(record))
    else:
        _show_clusters(clusters, texts, names)
    if picture is not None and not as_json:
        typer.echo(f"{picture}: a map of {len(texts):,} texts")


def _encode(
    file: str, column: list[str] | None, files: InputFiles, *, model: str, precision: Precision
) -> "tuple[list[str], list[Rest], list[int], Floats]":
    """The texts, the other columns and the positions of their rows, and their vectors."""
    from tercet.similar import text_vectors

    found = list(files.numbered_texts(file, column))
    texts, rests, rows = (list(part) for part in zip(*found, strict=True))
    scorer = open_model(model, precision)
    with counting("encoding", total=len(texts)) as advance:
        return texts, rests, rows, text_vectors(scorer, texts, on_progress=advance)


def _number_of_pairs(texts: "Sequence[str]") -> int:
    return len(texts) * (len(texts) - 1) // 2


def _pair_records(
    found: "Sequence[ClosePair]", texts: "Sequence[str]", rests: "Sequence[Rest]", *, rows: "Sequence[int]"
) -> "Iterator[dict[str, object]]":
    for pair in found:
        both = (pair.first, pair.second)
        yield {
            "score": pair.score,
            "first": rows[pair.first],
            "second": rows[pair.second],
            "texts": [texts[position] for position in both],
            **_columns(both, rests),
        }


def _columns(positions: "Sequence[int]", rests: "Sequence[Rest]") -> "dict[str, list[Rest]]":
    """The other columns of rows under ``columns``, if there are any."""
    return {"columns": [rests[position] for position in positions]} if any(rests) else {}


def _write(out: Path, records: "Iterable[dict[str, object]]", *, overwrite: bool) -> None:
    with (
        new_file(out, overwrite=overwrite) as partial,
        writing(out),
        partial.open("w", encoding="utf-8") as file,
    ):
        count = 0
        for record in records:
            file.write(json_line(record) + "\n")
            count += 1
    typer.echo(f"{out}: {count:,} rows")


def _show_pairs(
    found: "Sequence[ClosePair]", texts: "Sequence[str]", rows: "Sequence[int]", *, caption: str
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=caption, caption_justify="left")
    table.add_column("score", justify="right")
    table.add_column("row", justify="right", style="dim")
    table.add_column("text", overflow="fold")
    for pair in found:
        first, second = (Text(one_line(texts[position])) for position in (pair.first, pair.second))
        table.add_row(f"{pair.score:.4f}", str(rows[pair.first]), first)
        table.add_row("", str(rows[pair.second]), second, end_section=True)
    SafeConsole().print(table)


def _show_clusters(
    clusters: "Sequence[Sequence[int]]", texts: "Sequence[str]", names: "Sequence[str]"
) -> None:
    from rich.table import Table
    from rich.text import Text

    members_in_all = sum(map(len, clusters))
    cut = (
        f"; {SHOWN_CLUSTERS} of {len(clusters):,} shown; -o FILE writes all"
        if len(clusters) > SHOWN_CLUSTERS
        else ""
    )
    table = Table(
        caption=f"{len(clusters):,} clusters with {members_in_all:,} of {len(texts):,} texts{cut}",
        caption_justify="left",
    )
    table.add_column("texts", justify="right")
    table.add_column("name", style="bold", max_width=28, overflow="fold")
    table.add_column("centre of the cluster, then other texts", overflow="fold")
    for members, name in zip(clusters[:SHOWN_CLUSTERS], names, strict=False):
        lines = [one_line(texts[position]) for position in members[:SHOWN_TEXTS]]
        more = [f"… and {len(members) - SHOWN_TEXTS:,} more"] if len(members) > SHOWN_TEXTS else []
        cells = Text(printable(name)), Text("\n".join(lines + more))
        table.add_row(str(len(members)), *cells, end_section=True)
    SafeConsole().print(table)
