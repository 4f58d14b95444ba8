"""``tercet evaluate`` and ``tercet compare``: what models are worth, and where they differ."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tercet.cli.options import JsonOption, PrecisionOption, printable, waiting
from tercet.cli.progress import say_if_watched
from tercet.cli.train import DataOption, DeviceOption, RecipeArgument, SetOption, run_folder
from tercet.config import PRECISIONS, Precision
from tercet.errors import InputError
from tercet.extras import require
from tercet.files import check_free
from tercet.inputs import check_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tercet.evaluate.run import Table

MODEL_HELP = (
    "A model: bi, poly, cross, a folder, a hub id; bm25, tfidf or wordllama; mean:FOLDER or first:FOLDER "
    "for an untrained encoder; LABEL=FOLDER,FOLDER for several seeds."
)
TASK_HELP = (
    "A task: a TOML file (tasks/ has some), or KIND:FILE, where KIND is similarity, choices, answers, pairs, "
    "triplets, probe or clusters."
)
ModelsOption = Annotated[
    list[str], typer.Option("--model", "-m", help=f"{MODEL_HELP} May be repeated.", metavar="MODEL")
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option("--column", help="Of KIND:FILE: what a column is called there.", metavar="ROLE=NAME"),
]


def evaluate(
    given: Annotated[
        list[str],
        typer.Argument(help=f"Models and tasks. {MODEL_HELP} {TASK_HELP}", metavar="MODEL... TASK..."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write results.json and report.html to this folder.", metavar="FOLDER"
        ),
    ] = None,
    rerank: Annotated[
        str | None, typer.Option(help="Of retrieval: a model that reads the best 100 again.", metavar="MODEL")
    ] = None,
    hybrid: Annotated[
        bool, typer.Option("--hybrid", help="Of retrieval: fuse each ranking with BM25's too.")
    ] = False,
    column: ColumnsOption = None,
    data: DataOption = None,
    precision: PrecisionOption = "fp32",
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure models on tasks, each figure with its interval; the others are held against the first.

    Example: tercet evaluate bi bm25 answers:sample:faq.en
    """
    models, tasks = _parted(given)
    check_choice("precision", precision, PRECISIONS)
    if out is not None:
        check_free(out)
        require("matplotlib", extra="evaluate", purpose="a report")  # asked now, not when hours have passed
    tables: list[Table] = []
    for table in _tables(
        models, tasks, column, data, rerank=rerank, hybrid=hybrid, precision=precision, device=device
    ):
        tables.append(table)
        if not as_json:
            _show(table)
    if as_json:
        from tercet.evaluate.report import as_json as numbers

        typer.echo(json.dumps(numbers(tables), ensure_ascii=False, allow_nan=False))
    if out is not None:
        from tercet.evaluate.report import write_report

        with waiting(f"writing {out}"):
            write_report(tables, out, settings={"models": models, "tasks": tasks, "precision": precision})
        typer.echo(f"{out / 'report.html'}: tables, pictures, the worst cases", err=as_json)


def compare(
    left: Annotated[str, typer.Argument(help=MODEL_HELP, metavar="A")],
    right: Annotated[str, typer.Argument(help="Another.", metavar="B")],
    task: Annotated[str, typer.Argument(help=TASK_HELP)],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many cases to show.")] = 5,
    column: ColumnsOption = None,
    data: DataOption = None,
    precision: PrecisionOption = "fp32",
    device: DeviceOption = None,
) -> None:
    """Show where two models disagree, and which is better on a task, if it can be said.

    Example: tercet compare bi bm25 answers:sample:faq.en
    """
    from tercet.evaluate.disagree import better_places, disagreement
    from tercet.evaluate.report import against

    (table,) = _tables([left, right], [task], column, data, precision=precision, device=device)
    _show(table)
    first, second = table.rows
    gap = second.against(first)
    typer.echo(f"\n{second.label} against {first.label}: {against(gap)}")
    for one, other in ((first, second), (second, first)):
        places = better_places(one.first, other.first)
        share = f"{len(places):,} of {one.first.cases:,} cases"
        typer.echo(f"\n{one.label} does better in {share}, most in these:")
        for place in places[:count]:
            case = disagreement(one.first, other.first, place)
            typer.echo(f"\n  {printable(case.context)}\n    wanted      {printable(case.wanted)}")
            for label, got in ((one.label, case.ours), (other.label, case.theirs)):
                typer.echo(f"    {label:<11} {printable(got)}")


def protocol(
    recipe: RecipeArgument,
    group: Annotated[
        str, typer.Option("--group", help="Leave out one value of this column at a time, such as a topic.")
    ] = "",
    folds: Annotated[int, typer.Option("--folds", min=0, help="Or so many folds, drawn by chance.")] = 0,
    data: DataOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder for the runs; a second call goes on.", metavar="FOLDER"),
    ] = None,
    change: SetOption = None,
    device: DeviceOption = None,
) -> None:
    """Train on all parts of the data but one and measure on that one, in turn (as Sentence-BERT on AFS).

    Example: tercet protocol recipes/sbert-arguments.toml --group topic
    """
    from tercet.cli.progress import step_progress
    from tercet.data.sources import data_root
    from tercet.evaluate.report import as_json as numbers
    from tercet.files import write_json
    from tercet.training.protocol import run_protocol
    from tercet.training.recipe import read_recipe

    if bool(group) == bool(folds):
        raise InputError("give --group COLUMN or --folds N")
    folder = out or run_folder(None, recipe).with_name(f"{recipe.stem}-{group or f'{folds}-folds'}")
    with step_progress() as teller:
        table = run_protocol(
            read_recipe(recipe, change or []),
            folder,
            group=group,
            folds=folds,
            root=data_root(data),
            device=device,
            teller=teller,
        )
    _show(table)
    write_json(folder / "protocol.json", numbers([table]))


def _parted(given: list[str]) -> tuple[list[str], list[str]]:
    """Models first, then tasks."""
    from tercet.evaluate.tasks.config import is_task

    tasks = [name for name in given if is_task(name)]
    models = [name for name in given if not is_task(name)]
    if not models or not tasks:
        missing = "a model" if not models else "a task, such as tasks/stsb.toml or similarity:pairs.jsonl"
        raise InputError(f"name {missing}")
    return models, tasks


def _tables(
    models: list[str],
    tasks: list[str],
    columns: list[str] | None,
    data: Path | None,
    *,
    rerank: str | None = None,
    hybrid: bool = False,
    precision: str,
    device: str | None,
) -> "Iterator[Table]":
    from tercet.data.sources import data_root
    from tercet.evaluate.named import check_different, parse_name
    from tercet.evaluate.run import Evaluation
    from tercet.evaluate.tasks.config import read_task
    from tercet.evaluate.tasks.load import load_task

    named = [parse_name(model) for model in models]
    check_different(named)
    read = [read_task(task, columns=dict(_column(each) for each in columns or [])) for task in tasks]
    loaded = [load_task(task, root=data_root(data)) for task in read]
    evaluation = Evaluation(
        named,
        rerank=rerank,
        hybrid=hybrid,
        precision=cast("Precision", precision),
        device=device,
        tell=say_if_watched,
    )
    evaluation.check(loaded)
    return (evaluation.table(task) for task in loaded)


def _column(given: str) -> tuple[str, str]:
    role, separator, name = given.partition("=")
    if not separator or not role or not name:
        raise InputError(f"--column must be ROLE=NAME, got {given!r}")
    return role, name


def _show(table: "Table") -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from tercet.evaluate.report import against, percent

    verdicts = table.verdicts
    first = table.rows[0]
    grid = Grid(title=Text(f"{table.task}, {first.first.cases:,} cases"), title_justify="left", box=SIMPLE)
    grid.add_column("", no_wrap=True)
    grid.add_column(first.main, justify="right", no_wrap=True)
    grid.add_column("ms", justify="right", no_wrap=True)
    grid.add_column("and", style="dim")
    if verdicts:
        grid.add_column(f"against {first.label}")
    for row in table.rows:
        others = (
            f"{name} {100 * found.value:.1f}" for name, found in row.figures.items() if name != row.main
        )
        gap = [against(verdicts[row.label])] if row.label in verdicts else []
        label = Text(printable(row.label))
        taken = f"{row.milliseconds:.1f}" if row.milliseconds else ""
        grid.add_row(label, percent(row, row.main), taken, ", ".join(others), *gap)
    Console().print(grid)
