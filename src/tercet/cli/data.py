"""``tercet data``: what is in a data set, and negatives that are hard to tell from answers."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tercet.cli.options import ModelOption, PrecisionOption, open_dual, open_model, waiting
from tercet.cli.progress import track
from tercet.data.readers import READER_KINDS, DataConfig, ReaderKind, read_lessons
from tercet.data.rows import STDIN
from tercet.data.sources import data_root
from tercet.errors import InputError
from tercet.files import check_free

if TYPE_CHECKING:
    from rich.console import Console

data = typer.Typer(
    name="data",
    help="Look at data before training, and mine hard negatives.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        help="Files, sample:NAME or hf:NAME@SPLIT; retrieval takes texts, queries and judgements.",
        metavar="FILE...",
    ),
]
ReaderOption = Annotated[str, typer.Option(help="What a row is.", metavar="|".join(READER_KINDS))]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option("--column", help="What the file calls a column; may be repeated.", metavar="ROLE=NAME"),
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", help="A label of pairs, in order; may be repeated.")
]
RootOption = Annotated[
    Path | None,
    typer.Option("--data", help="The folder that files lie under; TERCET_DATA by default.", metavar="FOLDER"),
]


@data.command()
def summary(
    files: FilesArgument,
    reader: ReaderOption = DataConfig.reader,
    column: ColumnOption = None,
    label: LabelOption = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Files that training must not overlap with.", metavar="FILE")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Also count the texts that this model has to cut.")
    ] = None,
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")] = False,
) -> None:
    """Count rows, texts, lengths, labels, duplicates and what is shared with test data.

    Example: tercet data summary sample:pairs.en --model bi
    """
    from tercet.data.summary import summarise

    config = data_config(files, reader, column, label)
    folder = data_root(root)
    if model is not None and STDIN in files:
        raise InputError("standard input can be read once only: write it to a file to count what is cut")
    against = read_lessons(data_config(test, reader, column, label), root=folder) if test else ()
    with waiting("reading"):
        found = summarise(read_lessons(config, root=folder), against=against, labels=config.labels)
    if model is not None:
        from tercet.training.cuts import cut_shares

        scorer = open_model(model, "fp32")
        with waiting("tokenising"):
            found["cut by the model"] = cut_shares(scorer, read_lessons(config, root=folder))
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        _show(found)


@data.command()
def negatives(
    files: FilesArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSONL file to write.", metavar="FILE")],
    reader: ReaderOption = "answers",
    column: ColumnOption = None,
    by: Annotated[
        str, typer.Option(help="What finds them: shared words, or the model.", metavar="bm25|model")
    ] = "bm25",
    count: Annotated[int, typer.Option(help="How many for each context.")] = 4,
    depth: Annotated[int, typer.Option(help="How many of the best are looked at.")] = 50,
    margin: Annotated[
        float, typer.Option(help="How much less than the answer a negative scores, by the model.")
    ] = 0.05,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    root: RootOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Put wrong candidates that look right beside each answer.

    The file has the columns context, answer and negatives, and is read with reader = "answers" and
    columns = { negatives = "negatives" }.

    Example: tercet data negatives sample:faq.en -o hard.jsonl --by model
    """
    from tercet.data.readers import all_lessons
    from tercet.files import new_file
    from tercet.training.mining import Miner, MiningConfig, mine

    config = MiningConfig(by=cast("Miner", by), negatives=count, depth=depth, margin=margin)
    check_free(out, overwrite=overwrite)
    lessons = all_lessons(data_config(files, reader, column, None), root=data_root(root))
    scorer = open_dual(model, precision)
    few = none = 0
    with new_file(out, overwrite=overwrite) as file, file.open("w", encoding="utf-8") as opened:
        for lesson in track(mine(lessons, scorer, config), total=len(lessons), what="lessons"):
            answer, *wrong = lesson.candidates
            few += len(wrong) < count
            none += not wrong
            row = {"context": lesson.context, "answer": answer, "negatives": wrong}
            opened.write(json.dumps(row, ensure_ascii=False) + "\n")
    typer.echo(f"{out}: {len(lessons):,} lessons")
    if few:
        typer.echo(f"{_shortage(few, none, count)}: raise --depth or lower --margin", err=True)


def _shortage(few: int, none: int, count: int) -> str:
    """How many lessons have not what was asked for."""
    if few == none:
        return f"{none:,} have no negatives"
    return f"{few:,} have fewer than {count} negatives" + (f", {none:,} of them none" if none else "")


def data_config(
    files: list[str], reader: str, column: list[str] | None, label: list[str] | None
) -> DataConfig:
    """What the options say of a data set."""
    columns: dict[str, str] = {}
    for each in column or []:
        role, equals, name = each.partition("=")
        if not equals or not name:
            raise InputError(f"a column is written as role=name, such as context=question, got {each!r}")
        columns[role] = name
    return DataConfig(
        files=tuple(files), reader=cast("ReaderKind", reader), columns=columns, labels=tuple(label or ())
    )


def _show(found: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    simple = {name: value for name, value in found.items() if not isinstance(value, dict)}
    counts = [f"{name} [bold]{value:,}[/]" for name, value in simple.items() if value is not None]
    console.print("  ".join(counts))
    if not found["lessons"]:
        return
    _table(console, {name: found[name] for name in ("contexts", "candidates") if name in found})
    for name in ("candidates of a lesson", "targets"):
        if len(found.get(name, {})) > (1 if name != "targets" else 0):
            _bars(console, name, found[name])
    if "cut by the model" in found:
        shares = "  ".join(f"{name} {share:.1%}" for name, share in found["cut by the model"].items())
        console.print(f"\ncut by the model  {shares}")


def _table(console: "Console", sides: dict[str, dict[str, int]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    for heading in next(iter(sides.values()), {}):
        table.add_column(heading, justify="right")
    for name, numbers in sides.items():
        table.add_row(name, *(f"{number:,}" for number in numbers.values()))
    console.print(table)
    console.print("lengths are in characters", style="dim")


def _bars(console: "Console", name: str, counts: dict[str, int]) -> None:
    most = max(counts.values()) or 1
    width = max(map(len, counts))
    console.print(f"\n{name}")
    for value, count in counts.items():
        console.print(f"  {value:>{width}}  {count:>9,}  {'█' * round(40 * count / most)}", markup=False)
