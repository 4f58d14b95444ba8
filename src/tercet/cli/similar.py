"""``tercet pairs`` and ``tercet cluster``: which texts of a list are alike."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.options import (
    SOURCE_HELP,
    FormatOption,
    JsonOption,
    ModelOption,
    PrecisionOption,
    number_of_rows,
    open_model,
    open_rows,
    printable,
    waiting,
)
from tercet.cli.progress import counting
from tercet.data.columns import texts as read_texts
from tercet.errors import InputError
from tercet.files import check_free, new_file, writing
from tercet.inputs import check_choice, check_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tercet.records import ClosePair, Floats

TextsArgument = Annotated[str, typer.Argument(help=f"The texts. {SOURCE_HELP}", metavar="FILE")]
ColumnOption = Annotated[str | None, typer.Option(help="The column that holds the texts.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write all of them to a JSONL file.", metavar="FILE")
]
LAYOUTS = ("pca", "umap")
SHOWN_GROUPS, SHOWN_TEXTS = 10, 5


def pairs(
    file: TextsArgument,
    column: ColumnOption = None,
    count: Annotated[int, typer.Option(help="How many pairs at the most.")] = 20,
    threshold: Annotated[float, typer.Option(help="The least score of a pair.")] = -1.0,
    out: OutOption = None,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the pairs of texts that are most alike: duplicates, paraphrases.

    Example: tercet pairs sample:faq.en --column answer --count 5
    """
    from tercet.similar import closest_vectors

    check_count("count", count)
    if out is not None:
        check_free(out)
    texts, vectors = _read(file, column, model, precision, file_format)
    with counting("comparing", total=len(texts)) as advance:
        found = closest_vectors(vectors, count, threshold=threshold, on_progress=advance)
    rows = [
        {"score": pair.score, "first": pair.first, "second": pair.second, "texts": _both(pair, texts)}
        for pair in found
    ]
    if out is not None:
        _write(out, rows)
    elif as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
    else:
        _show_pairs(found, texts)


def cluster(
    file: TextsArgument,
    column: ColumnOption = None,
    threshold: Annotated[
        float, typer.Option(help="The least score that a text may have with the centre of its group.")
    ] = 0.75,
    smallest: Annotated[int, typer.Option(help="How many texts a group must have.")] = 2,
    out: OutOption = None,
    picture: Annotated[
        Path | None,
        typer.Option("--map", help="Draw all texts as points, in an .html or .png file.", metavar="FILE"),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            help="Where points lie: pca is quick, umap keeps neighbours.", metavar="|".join(LAYOUTS)
        ),
    ] = "pca",
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    file_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show groups of texts that are alike, the largest first.

    Example: tercet cluster sample:faq.en --column answer --threshold 0.6 --map map.html
    """
    from tercet.cli.map_page import draw_map
    from tercet.index.all_pairs import communities

    check_choice("layout", layout, LAYOUTS)
    check_count("smallest", smallest)
    for path in (out, picture):
        if path is not None:
            check_free(path)
    if picture is not None and picture.suffix not in (".html", ".png"):
        raise InputError(f"a map is an .html or a .png file, got {picture.name}")
    texts, vectors = _read(file, column, model, precision, file_format)
    with counting("comparing", total=len(texts)) as advance:
        found = communities(vectors, threshold=threshold, smallest=smallest, on_progress=advance)
    groups = [members.tolist() for members in found]
    rows = [{"rows": members, "texts": [texts[place] for place in members]} for members in groups]
    if picture is not None:
        with waiting("drawing"):
            draw_map(picture, vectors, texts, groups, layout=layout)
    if out is not None:
        _write(out, rows)
    elif as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
    else:
        _show_groups(groups, texts)
    if picture is not None and not as_json:
        typer.echo(f"{picture}: a map of {len(texts):,} texts")


def _read(
    file: str, column: str | None, model: str, precision: str, file_format: str | None
) -> "tuple[list[str], Floats]":
    from tercet.similar import text_vectors

    texts = list(read_texts(open_rows(file, file_format), column))
    scorer = open_model(model, precision)
    with counting("encoding", total=number_of_rows(file, file_format)) as advance:
        return texts, text_vectors(scorer, texts, on_progress=advance)


def _both(pair: "ClosePair", texts: "Sequence[str]") -> list[str]:
    return [texts[pair.first], texts[pair.second]]


def _write(out: Path, rows: "Iterable[dict[str, object]]") -> None:
    with new_file(out) as partial, writing(out), partial.open("w", encoding="utf-8") as file:
        count = 0
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    typer.echo(f"{out}: {count:,} rows")


def _show_pairs(found: "Sequence[ClosePair]", texts: "Sequence[str]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=f"the closest {len(found):,} pairs of {len(texts):,} texts", caption_justify="left")
    table.add_column("score", justify="right")
    table.add_column("row", justify="right", style="dim")
    table.add_column("text")
    for pair in found:
        first, second = (Text(printable(text)) for text in _both(pair, texts))
        table.add_row(f"{pair.score:.4f}", str(pair.first + 1), first)
        table.add_row("", str(pair.second + 1), second, end_section=True)
    Console().print(table)


def _show_groups(groups: "Sequence[Sequence[int]]", texts: "Sequence[str]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    inside = sum(map(len, groups))
    table = Table(
        caption=f"{len(groups):,} groups hold {inside:,} of {len(texts):,} texts", caption_justify="left"
    )
    table.add_column("texts", justify="right")
    table.add_column("the centre of the group, and others")
    for members in groups[:SHOWN_GROUPS]:
        lines = [printable(texts[place]) for place in members[:SHOWN_TEXTS]]
        more = [f"… and {len(members) - SHOWN_TEXTS} more"] if len(members) > SHOWN_TEXTS else []
        table.add_row(str(len(members)), Text("\n".join(lines + more)), end_section=True)
    Console().print(table)
