"""``tercet data``: inspect data sets, and mine hard negatives."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tercet.cli.console import SafeConsole, printable
from tercet.cli.options import (
    DataOption,
    DelimiterOption,
    DualModelOption,
    EncodingOption,
    OverwriteOption,
    PrecisionOption,
    SkipEmptyOption,
    open_dual,
    open_model,
    parse_column,
    spinner,
)
from tercet.cli.progress import track
from tercet.data.readers import iter_examples
from tercet.data.rows import STDIN
from tercet.data.sources import data_root
from tercet.errors import InputError
from tercet.files.atomic import check_free
from tercet.files.structured import json_text
from tercet.settings.data import DataConfig, ReaderKind
from tercet.settings.field_docs import field_docs
from tercet.settings.mining import Miner, MiningConfig

data = typer.Typer(
    name="data",
    help="Inspect data before training, and mine hard negatives.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

MINING = field_docs(MiningConfig)

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        help="Files, sample:NAME or hf:NAME@SPLIT; the reader retrieval needs three: corpus, queries, qrels.",
        metavar="FILE...",
    ),
]
ReaderOption = Annotated[ReaderKind, typer.Option(help="Reader: what a row of the file contains.")]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column", help="The column of a role, such as context=question; repeatable.", metavar="ROLE=NAME"
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        help="Label names of the reader pairs, in the order of their numbers; repeatable.",
        metavar="NAME",
    ),
]


@data.command()
def summary(
    files: FilesArgument,
    reader: ReaderOption = DataConfig.reader,
    column: ColumnOption = None,
    label: LabelOption = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Test file to count overlap with; repeatable.", metavar="FILE")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Also count the texts that this model truncates.")
    ] = None,
    root: DataOption = None,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count examples, texts, lengths, labels, duplicates and overlap with test data.

    Example: tercet data summary sample:pairs.en --model bi
    """
    from tercet.data.summary import summarize

    config = replace(
        data_config(files, reader, column, label),
        delimiter=delimiter,
        encoding=encoding,
        skip_empty=skip_empty,
    )
    folder = data_root(root)
    if model is not None and STDIN in files:
        raise InputError("--model reads the data twice, which standard input does not allow: use a file")
    against = iter_examples(replace(config, files=tuple(test)), root=folder) if test else ()
    with spinner("reading"):
        found = summarize(iter_examples(config, root=folder), against=against, labels=config.labels)
    if model is not None:
        from tercet.training.truncation import truncated_shares

        scorer = open_model(model)
        with spinner("tokenizing"):
            found["truncated"] = truncated_shares(scorer, iter_examples(config, root=folder))
    if as_json:
        typer.echo(json_text(found))
    else:
        _show(found)


@data.command()
def negatives(
    files: FilesArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSONL file to write.", metavar="FILE")],
    reader: ReaderOption = "answers",
    column: ColumnOption = None,
    by: Annotated[Miner, typer.Option(help=MINING["by"])] = MiningConfig.by,
    count: Annotated[int, typer.Option(help=MINING["negatives"])] = MiningConfig.negatives,
    depth: Annotated[int, typer.Option(help=MINING["depth"])] = MiningConfig.depth,
    margin: Annotated[float, typer.Option(help=MINING["margin"])] = MiningConfig.margin,
    model: DualModelOption = "bi",
    precision: PrecisionOption = "fp32",
    root: DataOption = None,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    overwrite: OverwriteOption = False,
) -> None:
    """Mine hard negatives: for each context, wrong candidates that rank high.

    The output has the columns context, answer and negatives. Train on it with reader = "answers" and
    columns = { negatives = "negatives" }. If too few negatives are found, raise --depth.

    Example: tercet data negatives sample:faq.en -o hard.jsonl --by model
    """
    from tercet.data.readers import read_examples
    from tercet.files.atomic import new_file
    from tercet.training.mining import mine

    config = MiningConfig(by=by, negatives=count, depth=depth, margin=margin)
    check_free(out, overwrite=overwrite)
    data = replace(
        data_config(files, reader, column, None),
        delimiter=delimiter,
        encoding=encoding,
        skip_empty=skip_empty,
    )
    examples = read_examples(data, root=data_root(root))
    scorer = open_dual(model, precision)
    few = none = 0
    with new_file(out, overwrite=overwrite) as file, file.open("w", encoding="utf-8") as opened:
        for example in track(mine(examples, scorer, config), total=len(examples), what="examples"):
            answer, *wrong = example.candidates
            few += len(wrong) < count
            none += not wrong
            row = {"context": example.context, "answer": answer, "negatives": wrong}
            opened.write(json_text(row) + "\n")
    typer.echo(f"{out}: {len(examples):,} examples")
    if few:
        typer.echo(f"{_shortage(few, none, count)}: raise --depth or lower --margin", err=True)


def _shortage(few: int, none: int, count: int) -> str:
    """How many examples have too few negatives."""
    if few == none:
        return f"{none:,} examples have no negatives"
    return f"{few:,} examples have fewer than {count} negatives" + (f" ({none:,} have none)" if none else "")


def data_config(
    files: list[str], reader: ReaderKind, column: list[str] | None, label: list[str] | None
) -> DataConfig:
    """The data set that the options describe."""
    return DataConfig(
        files=tuple(files),
        reader=reader,
        columns=dict(map(parse_column, column or [])),
        labels=tuple(label or ()),
    )


def _show(found: dict[str, Any]) -> None:
    from rich.text import Text

    console = SafeConsole(highlight=False)
    simple = {name: value for name, value in found.items() if not isinstance(value, dict)}
    counts = [
        Text.assemble(f"{name} ", (f"{value:,}", "bold"))
        for name, value in simple.items()
        if value is not None
    ]
    console.print(Text("  ").join(counts))
    if not found["examples"]:
        return
    _table(console, {name: found[name] for name in ("contexts", "candidates") if name in found})
    for name in ("candidates per example", "targets"):
        if len(found.get(name, {})) > (1 if name != "targets" else 0):
            _bars(console, name, found[name])
    if "truncated" in found:
        shares = "  ".join(f"{name} {share:.1%}" for name, share in found["truncated"].items())
        console.print(f"\ntruncated by the model  {shares}")


def _table(console: SafeConsole, sides: dict[str, dict[str, int]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    for heading in next(iter(sides.values()), {}):
        table.add_column(heading, justify="right")
    for name, numbers in sides.items():
        table.add_row(name, *(f"{number:,}" for number in numbers.values()))
    console.print(table)
    console.print("lengths are in characters", style="dim")


def _bars(console: SafeConsole, name: str, counts: dict[str, int]) -> None:
    most = max(counts.values()) or 1
    shown = {printable(value): count for value, count in counts.items()}
    width = max(map(len, shown))
    console.print(f"\n{name}")
    for value, count in shown.items():
        console.print(f"  {value:>{width}}  {count:>9,}  {'█' * round(40 * count / most)}")
