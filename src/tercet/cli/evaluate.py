"""``tercet evaluate``, ``tercet compare`` and ``tercet cross-validate``: how good models are."""

from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.console import SafeConsole, printable
from tercet.cli.options import (
    ChunkBoundaryOption,
    ChunkOption,
    ChunkOverlapOption,
    DataOption,
    DelimiterOption,
    DeviceOption,
    EncodingOption,
    JsonOption,
    PrecisionOption,
    SkipEmptyOption,
    chunk_config,
    parse_column,
    spinner,
)
from tercet.cli.progress import report_if_terminal, watching
from tercet.cli.train import RecipeArgument, SetOption, run_folder
from tercet.data.sample import RETRIEVAL_SETS
from tercet.data.sources import SAMPLE, data_root
from tercet.errors import InputError
from tercet.extras import require, require_torch
from tercet.files.atomic import check_free
from tercet.files.structured import json_text
from tercet.settings.chunks import ChunkConfig
from tercet.settings.models import Precision
from tercet.settings.tasks import find_folder, is_task, read_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tercet.evaluate.run import Evaluation, Table
    from tercet.evaluate.tasks.load import Task
    from tercet.settings.tasks import TaskConfig

MODEL_HELP = (
    "A model: bi, bi-ko, poly, cross, a folder or a hub id; bm25, tfidf or wordllama; mean:FOLDER or "
    "first:FOLDER for an untrained encoder; LABEL=FOLDER,FOLDER for several seeds."
)
TASK_HELP = (
    "A task: task:NAME (listed by tercet tasks); a TOML file; KIND:FILE, where KIND is similarity, choices, "
    "answers, pairs, classes, triplets, probe or clusters; or a retrieval set: a folder with corpus.jsonl, "
    f"queries.jsonl and qrels.tsv (or qrels/test.tsv), or {SAMPLE}NAME ({', '.join(RETRIEVAL_SETS)})."
)
KNOWN_MODELS = ("bi", "poly", "cross", "bm25", "tfidf", "wordllama")
"""Names of models that need no folder."""

ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="For KIND:FILE and folders: the column of a role, such as context=question; repeatable.",
        metavar="ROLE=NAME",
    ),
]
SplitOption = Annotated[
    str,
    typer.Option(
        "--split",
        help="Folders: the judgements, such as dev for qrels/dev.tsv. Default: test, or the only ones.",
        metavar="NAME",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, help="Use this many random cases; for retrieval, queries. The corpus stays whole."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Random seed, such as that of --limit. Default: the task's, or 0."),
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
    reranker: Annotated[
        str | None,
        typer.Option(
            help="Retrieval tasks: also rerank the best documents of each ranking with this model.",
            metavar="MODEL",
        ),
    ] = None,
    rerank_depth: Annotated[
        int | None,
        typer.Option("--rerank-depth", min=1, help="How many documents --reranker reranks. Default: 100."),
    ] = None,
    hybrid: Annotated[
        bool, typer.Option("--hybrid", help="Retrieval tasks: also fuse each ranking with that of BM25.")
    ] = False,
    chunk: ChunkOption = None,
    chunk_overlap: ChunkOverlapOption = 0,
    chunk_boundary: ChunkBoundaryOption = "sentences",
    limit: LimitOption = None,
    seed: SeedOption = None,
    split: SplitOption = "",
    column: ColumnsOption = None,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    data: DataOption = None,
    precision: PrecisionOption = "fp32",
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate models on tasks with confidence intervals, and compare each model with the first.

    Example: tercet evaluate bi bm25 answers:sample:faq.en

    Example: tercet evaluate bi bm25 my-folder, which contains corpus.jsonl, queries.jsonl and qrels.tsv
    """
    if rerank_depth is not None and reranker is None:
        raise InputError("--rerank-depth needs --reranker MODEL")
    chunks = chunk_config(chunk, chunk_overlap, chunk_boundary)
    models, tasks = _split(given, data)
    if out is not None:
        check_free(out)
        require("matplotlib", extra="evaluate", purpose="a report")  # fail now, not after hours
    tables: list[Table] = []
    configs = _configs(
        tasks,
        column,
        data,
        limit=limit,
        seed=seed,
        split=split,
        skip_empty=skip_empty,
        delimiter=delimiter,
        encoding=encoding,
    )
    for table in _tables(
        models,
        configs,
        data,
        reranker=reranker,
        rerank_depth=rerank_depth,
        hybrid=hybrid,
        chunk=chunks,
        precision=precision,
        device=device,
    ):
        tables.append(table)
        if not as_json:
            _show(table)
    if as_json:
        from tercet.evaluate.report import as_json as results

        typer.echo(json_text(results(tables)))
    if out is not None:
        from tercet.evaluate.report import write_report

        with spinner(f"writing {out}"):
            settings = {
                "models": models,
                "tasks": tasks,
                "precision": precision,
                "reranker": reranker,
                "rerank_depth": rerank_depth,
                "chunk": None if chunks is None else asdict(chunks),
                "hybrid": hybrid,
                "limit": limit,
                "seed": seed,
                "split": split,
            }
            write_report(tables, out, settings=settings)
        typer.echo(f"{out / 'report.html'}: tables, plots, worst cases", err=as_json)


def compare(
    left: Annotated[str, typer.Argument(help=MODEL_HELP, metavar="A")],
    right: Annotated[str, typer.Argument(help="Another model.", metavar="B")],
    task: Annotated[str, typer.Argument(help=TASK_HELP, metavar="TASK")],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many cases to show.")] = 5,
    limit: LimitOption = None,
    seed: SeedOption = None,
    split: SplitOption = "",
    column: ColumnsOption = None,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
    data: DataOption = None,
    precision: PrecisionOption = "fp32",
    device: DeviceOption = None,
) -> None:
    """Compare two models: whether the difference is significant, and on which cases they disagree.

    Example: tercet compare bi bm25 answers:sample:faq.en
    """
    from tercet.evaluate.disagreements import better_cases, disagreement
    from tercet.evaluate.report import against

    configs = _configs(
        [task],
        column,
        data,
        limit=limit,
        seed=seed,
        split=split,
        skip_empty=skip_empty,
        delimiter=delimiter,
        encoding=encoding,
    )
    (table,) = _tables([left, right], configs, data, precision=precision, device=device)
    _show(table)
    first, second = table.rows
    typer.echo(f"\n{second.label} compared with {first.label}: {against(second.against(first))}")
    for one, other in ((first, second), (second, first)):
        positions = better_cases(one.first, other.first)
        share = f"{len(positions):,} of {one.first.cases:,} cases"
        cut = f" ({count} of {len(positions):,} shown; --count shows more)" if count < len(positions) else ""
        typer.echo(f"\n{one.label} is better in {share}, with the largest margin in{cut}:")
        for position in positions[:count]:
            case = disagreement(one.first, other.first, position)
            typer.echo(f"\n  {printable(case.context)}\n    expected    {printable(case.wanted)}")
            for label, got in ((one.label, case.ours), (other.label, case.theirs)):
                typer.echo(f"    {printable(label):<11} {printable(got)}")


def cross_validate(
    recipe: RecipeArgument,
    group: Annotated[
        str,
        typer.Option(
            "--group", help="A column, such as topic: one fold for each of its values.", metavar="COLUMN"
        ),
    ] = "",
    folds: Annotated[
        int, typer.Option("--folds", min=0, help="Number of random folds, instead of --group.")
    ] = 0,
    data: DataOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for the runs. Default: in runs/. The same command resumes.",
            metavar="FOLDER",
        ),
    ] = None,
    change: SetOption = None,
    device: DeviceOption = None,
) -> None:
    """Cross-validate a recipe: train on all folds but one, evaluate on that one, for each fold.

    Example: tercet cross-validate sbert-arguments --group topic
    """
    from tercet.cli.progress import step_progress
    from tercet.evaluate.report import as_json as results
    from tercet.files.structured import write_json
    from tercet.settings.recipe import read_recipe

    if bool(group) == bool(folds):
        raise InputError("give --group COLUMN or --folds N")
    settings = read_recipe(recipe, change or [])
    require_torch("training", extra="train")
    from tercet.training.cross_validation import cross_validate as run

    folder = out or run_folder(None, recipe).with_name(f"{recipe.stem}-{group or f'{folds}-folds'}")
    with step_progress() as reporter:
        table = run(
            settings,
            folder,
            group=group,
            folds=folds,
            root=data_root(data),
            device=device,
            reporter=reporter,
        )
    _show(table)
    write_json(folder / "cross_validation.json", results([table]))


def _split(given: list[str], data: Path | None) -> tuple[list[str], list[str]]:
    """The models and the tasks among the arguments."""
    tasks = [name for name in given if is_task(name, root=data_root(data))]
    models = [name for name in given if name not in tasks]
    for name in models:
        if find_folder(name) is not None:
            from tercet.evaluate.model_names import check_model_folder

            check_model_folder(name)
    for name in models:
        _check_spelling(name, has_task=bool(tasks))
    if not models:
        raise InputError(f"{', '.join(tasks)}: give at least a model too, such as bi or bm25")
    if not tasks:
        raise InputError(
            f"no task among {', '.join(models)}: add task:stsb, similarity:pairs.jsonl or the folder of a "
            "retrieval set (an existing one, with corpus, queries and qrels)"
        )
    return models, tasks


def _check_spelling(name: str, *, has_task: bool) -> None:
    """Raise if a name is probably a misspelt model, or a misspelt folder where a task is missing."""
    if name in KNOWN_MODELS or Path(name).exists() or "/" in name.rstrip("/"):
        return
    folders = [] if has_task else [path.name for path in Path().iterdir() if path.is_dir()]
    similar = get_close_matches(name.rstrip("/"), [*KNOWN_MODELS, *folders], n=1, cutoff=0.75)
    if similar:
        raise InputError(f"{name} is neither a model nor a folder: did you mean {similar[0]}?")


def _configs(
    tasks: list[str],
    columns: list[str] | None,
    data: Path | None,
    *,
    limit: int | None,
    seed: int | None,
    split: str,
    skip_empty: bool,
    delimiter: str,
    encoding: str,
) -> "list[TaskConfig]":
    """The settings of the tasks, changed by the options that are given."""
    options = {
        "limit": limit,
        "seed": seed,
        "split": split or None,
        "skip_empty": skip_empty or None,
        "delimiter": delimiter or None,
        "encoding": encoding or None,
    }
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    names = dict(map(parse_column, columns or []))
    return [replace(read_task(task, columns=names, root=data_root(data)), **changes) for task in tasks]


def _tables(
    models: list[str],
    configs: "list[TaskConfig]",
    data: Path | None,
    *,
    reranker: str | None = None,
    rerank_depth: int | None = None,
    hybrid: bool = False,
    chunk: ChunkConfig | None = None,
    precision: Precision,
    device: str | None,
) -> "Iterator[Table]":
    from tercet.evaluate.model_names import check_distinct_labels, parse_model_name
    from tercet.evaluate.run import Evaluation
    from tercet.evaluate.tasks.load import load_task
    from tercet.evaluate.tasks.retrieval import DEPTH

    entries = [parse_model_name(model) for model in models]
    check_distinct_labels(entries)
    loaded = [load_task(config, root=data_root(data)) for config in configs]
    evaluation = Evaluation(
        entries,
        reranker=reranker,
        rerank_depth=rerank_depth or DEPTH,
        hybrid=hybrid,
        chunk=chunk,
        precision=precision,
        device=device,
        report=report_if_terminal,
    )
    evaluation.check(loaded)
    return _measured(evaluation, loaded)


def _measured(evaluation: "Evaluation", tasks: "Sequence[Task]") -> "Iterator[Table]":
    for task in tasks:
        with watching(f"evaluating {task.name}"):
            table = evaluation.table(task)
        yield table


def _show(table: "Table") -> None:
    from rich.box import SIMPLE
    from rich.table import Table as Grid
    from rich.text import Text

    from tercet.evaluate.report import against, percent

    verdicts = table.verdicts
    first = table.rows[0]
    grid = Grid(title=Text(printable(f"{table.task}, {table.size}")), title_justify="left", box=SIMPLE)
    if table.notes:
        grid.caption, grid.caption_justify = Text("\n".join(map(printable, table.notes))), "left"
    grid.add_column("", no_wrap=True)
    grid.add_column(first.main_metric, justify="right", no_wrap=True)
    grid.add_column("ms", justify="right", no_wrap=True)
    grid.add_column("other metrics", style="dim", overflow="fold")
    if verdicts:
        grid.add_column(f"compared with {printable(first.label)}", overflow="fold")
    for row in table.rows:
        others = (
            f"{name} {100 * estimate.value:.1f}"
            for name, estimate in row.estimates.items()
            if name != row.main_metric
        )
        verdict = [against(verdicts[row.label])] if row.label in verdicts else []
        label = Text(printable(row.label))
        time = f"{row.milliseconds:.1f}" if row.milliseconds else ""
        grid.add_row(label, percent(row, row.main_metric), time, ", ".join(others), *verdict)
    SafeConsole().print(grid)
