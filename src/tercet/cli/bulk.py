"""``tercet bulk``: many rows to Parquet shards, on this machine or on a Ray cluster."""

from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.data import ColumnOption, LabelOption, ReaderOption, data_config
from tercet.cli.options import (
    DelimiterOption,
    DualModelOption,
    EncodingOption,
    FormatOption,
    ModelOption,
    PrecisionOption,
    SkipEmptyOption,
)
from tercet.cli.progress import counting
from tercet.errors import InterruptedRunError
from tercet.settings.bulk import (
    ROWS_PER_SHARD,
    EncodeConfig,
    LabelConfig,
    ScoreConfig,
    WorkersConfig,
)
from tercet.settings.data import DataConfig, ReaderKind
from tercet.settings.field_docs import field_docs
from tercet.settings.files import FileConfig
from tercet.settings.mining import Miner, MiningConfig
from tercet.settings.models import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tercet.scale.job import Rows
    from tercet.scale.shards import ShardFolder
    from tercet.scale.work import Record, Task

bulk = typer.Typer(
    name="bulk",
    help="Encode, score, label, mine or evaluate many rows, on this machine or on a Ray cluster.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

MINING = field_docs(MiningConfig)

InputArgument = Annotated[
    str,
    typer.Argument(
        help="A file (JSONL, CSV, TSV, Parquet, text), a folder of them, or a URL such as s3://bucket/folder.",
        metavar="INPUT",
    ),
]
OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="The folder for the shards. The same command resumes a job.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(help="A Ray cluster, such as ray://head:10001. Default: this machine.", metavar="ADDRESS"),
]
WorkersOption = Annotated[int, typer.Option(help="Workers on CPUs; one on this machine needs no Ray.")]
GpuWorkersOption = Annotated[int, typer.Option(help="Workers with a GPU each.")]
CpusOption = Annotated[int, typer.Option(help="CPUs of each worker.")]
RowsOption = Annotated[int, typer.Option(help="Rows of a shard, which is done as a whole.")]
IdOption = Annotated[
    str | None,
    typer.Option("--id-column", help="The column with the ids.", show_default="id, or the row's number"),
]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job reads, writes and runs."""

    command: str
    source: str
    out: Path
    file: FileConfig
    workers: WorkersConfig
    rows_per_shard: int

    def files(self) -> list[str]:
        """The files of the input."""
        from tercet.scale.records import input_files

        return input_files(self.source)


@bulk.command()
def encode(
    source: InputArgument,
    out: OutOption,
    column: Annotated[
        list[str] | None, typer.Option(help="The column with the texts; several are joined.", metavar="NAME")
    ] = None,
    id_column: IdOption = None,
    side: Annotated[Side, typer.Option(help="Encode the texts as contexts or as candidates.")] = "candidate",
    model: DualModelOption = "bi",
    precision: PrecisionOption = "fp32",
    address: AddressOption = None,
    workers: WorkersOption = 1,
    gpu_workers: GpuWorkersOption = 0,
    cpus_per_worker: CpusOption = 1,
    rows_per_shard: RowsOption = ROWS_PER_SHARD,
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Write the embedding of each text. tercet index import makes an index of the shards.

    Example: tercet bulk encode articles/ --column body -o vectors --workers 8
    """
    from tercet.scale.encode import Encode
    from tercet.scale.records import input_rows, row_count, text_records
    from tercet.scale.work import Task

    place = Place(
        command="encode",
        source=source,
        out=out,
        file=FileConfig(format=file_format, delimiter=delimiter, encoding=encoding),
        workers=_workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard=rows_per_shard,
    )
    config = EncodeConfig(model=_model(model), precision=precision, side=side)
    names = place.files()

    def read() -> "Iterable[Record]":
        return text_records(
            input_rows(names, place.file),
            column=column,
            id_column=id_column,
            contexts=side == "context",
            skip_empty=skip_empty,
        )

    options = {"column": column, "id_column": id_column, "skip_empty": skip_empty, **asdict(place.file)}
    rows = _rows(place, read, options | asdict(config))
    _run(place, Task(Encode, config), rows, total=row_count(names, place.file))


@bulk.command()
def score(
    source: InputArgument,
    out: OutOption,
    context_column: Annotated[str, typer.Option(help="The column with the contexts.")] = "context",
    candidate_column: Annotated[str, typer.Option(help="The column with the candidates.")] = "candidate",
    id_column: IdOption = None,
    model: ModelOption = "bi",
    precision: PrecisionOption = "fp32",
    address: AddressOption = None,
    workers: WorkersOption = 1,
    gpu_workers: GpuWorkersOption = 0,
    cpus_per_worker: CpusOption = 1,
    rows_per_shard: RowsOption = ROWS_PER_SHARD,
    skip_empty: SkipEmptyOption = False,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Write the score of each pair.

    Example: tercet bulk score pairs.parquet -m cross -o scores --workers 8
    """
    from tercet.scale.records import input_rows, pair_records, row_count
    from tercet.scale.score import Score
    from tercet.scale.work import Task

    place = Place(
        command="score",
        source=source,
        out=out,
        file=FileConfig(format=file_format, delimiter=delimiter, encoding=encoding),
        workers=_workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard=rows_per_shard,
    )
    config = ScoreConfig(model=_model(model), precision=precision)
    names = place.files()

    def read() -> "Iterable[Record]":
        return pair_records(
            input_rows(names, place.file),
            context=context_column,
            candidate=candidate_column,
            id_column=id_column,
            skip_empty=skip_empty,
        )

    columns = {"context": context_column, "candidate": candidate_column, "id_column": id_column}
    options = {**columns, "skip_empty": skip_empty, **asdict(place.file)}
    rows = _rows(place, read, options | asdict(config))
    _run(place, Task(Score, config), rows, total=row_count(names, place.file))


@bulk.command()
def label(
    source: InputArgument,
    out: OutOption,
    model: Annotated[
        list[str], typer.Option("--model", "-m", help="A teacher; the scores of several are averaged.")
    ],
    reader: ReaderOption = "answers",
    column: ColumnOption = None,
    labels: LabelOption = None,
    precision: PrecisionOption = "fp32",
    address: AddressOption = None,
    workers: WorkersOption = 1,
    gpu_workers: GpuWorkersOption = 0,
    cpus_per_worker: CpusOption = 1,
    rows_per_shard: RowsOption = ROWS_PER_SHARD,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Write a teacher's score of each candidate of each example, as the reader scored reads them.

    Example: tercet bulk label train.jsonl --reader choices -m cross -o labelled --workers 8
    """
    from tercet.scale.examples import example_records
    from tercet.scale.label import Label
    from tercet.scale.work import Task

    place = Place(
        command="label",
        source=source,
        out=out,
        file=FileConfig(delimiter=delimiter, encoding=encoding),
        workers=_workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard=rows_per_shard,
    )
    data = _data(place, reader, column, labels, skip_empty=skip_empty)
    config = LabelConfig(models=tuple(map(_model, model)), precision=precision)
    rows = _rows(place, partial(example_records, data), asdict(data) | asdict(config))
    _run(place, Task(Label, config), rows)


@bulk.command()
def mine(
    source: InputArgument,
    out: OutOption,
    by: Annotated[Miner, typer.Option(help=MINING["by"])] = "bm25",
    negatives: Annotated[int, typer.Option(help=MINING["negatives"])] = 4,
    depth: Annotated[int, typer.Option(help=MINING["depth"])] = 50,
    margin: Annotated[float, typer.Option(help=MINING["margin"])] = 0.05,
    reader: ReaderOption = "answers",
    column: ColumnOption = None,
    model: DualModelOption = "bi",
    precision: PrecisionOption = "fp32",
    address: AddressOption = None,
    workers: WorkersOption = 1,
    gpu_workers: GpuWorkersOption = 0,
    cpus_per_worker: CpusOption = 1,
    rows_per_shard: RowsOption = ROWS_PER_SHARD,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Write hard negatives of each example, chosen among the answers of all.

    The reader answers reads the shards. Each worker has all answers and their vectors in memory.

    Example: tercet bulk mine train.jsonl -o mined --by model --workers 8
    """
    from tercet.scale.examples import example_records
    from tercet.scale.mine import run_mining

    place = Place(
        command="mine",
        source=source,
        out=out,
        file=FileConfig(delimiter=delimiter, encoding=encoding),
        workers=_workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard=rows_per_shard,
    )
    data = _data(place, reader, column, None, skip_empty=skip_empty)
    mining = MiningConfig(by=by, negatives=negatives, depth=depth, margin=margin)
    config = EncodeConfig(model=_model(model), precision=precision)
    rows = _rows(place, partial(example_records, data), asdict(data) | asdict(config) | asdict(mining))
    with _progress("encoding answers and mining", None) as advance:
        folder = run_mining(rows, out, place.workers, encode=config, mining=mining, on_progress=advance)
    _print(folder)


@bulk.command()
def evaluate(
    source: InputArgument,
    out: OutOption,
    model: ModelOption = "bi",
    reader: ReaderOption = "choices",
    column: ColumnOption = None,
    precision: PrecisionOption = "fp32",
    address: AddressOption = None,
    workers: WorkersOption = 1,
    gpu_workers: GpuWorkersOption = 0,
    cpus_per_worker: CpusOption = 1,
    rows_per_shard: RowsOption = ROWS_PER_SHARD,
    skip_empty: SkipEmptyOption = False,
    delimiter: DelimiterOption = "",
    encoding: EncodingOption = "",
) -> None:
    """Write the rank of the right candidate of each example, and R@k and MRR over all to manifest.json.

    Example: tercet bulk evaluate test.jsonl -m cross -o ranks --workers 8
    """
    from tercet.scale.evaluate import Evaluate, metrics_of
    from tercet.scale.examples import example_records
    from tercet.scale.work import Task

    place = Place(
        command="evaluate",
        source=source,
        out=out,
        file=FileConfig(delimiter=delimiter, encoding=encoding),
        workers=_workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard=rows_per_shard,
    )
    data = _data(place, reader, column, None, skip_empty=skip_empty)
    config = ScoreConfig(model=_model(model), precision=precision)
    rows = _rows(place, partial(example_records, data), asdict(data) | asdict(config))
    _run(place, Task(Evaluate, config), rows, finish=metrics_of)


def _workers(address: str | None, workers: int, gpu_workers: int, cpus_per_worker: int) -> WorkersConfig:
    return WorkersConfig(
        address=address, workers=workers, gpu_workers=gpu_workers, cpus_per_worker=cpus_per_worker
    )


def _model(name: str) -> str:
    """The name of a model, absolute if it is a folder: workers start in other folders."""
    from tercet.formats.sources import absolute_source

    return str(absolute_source(name))


def _data(
    place: Place, reader: ReaderKind, column: list[str] | None, labels: list[str] | None, *, skip_empty: bool
) -> DataConfig:
    """How the examples of a job are read."""
    return replace(
        data_config(place.files(), reader, column, labels),
        delimiter=place.file.delimiter,
        encoding=place.file.encoding,
        skip_empty=skip_empty,
    )


def _rows(place: Place, read: "Callable[[], Iterable[Record]]", options: "Mapping[str, Any]") -> "Rows":
    """The input of a job, with what a restarted one must have in common with it."""
    from tercet.scale.job import Rows

    description = {"command": place.command, "input": place.source, "options": dict(options)}
    return Rows(read, description, place.rows_per_shard)


def _run(
    place: Place,
    task: "Task",
    rows: "Rows",
    *,
    total: int | None = None,
    finish: "Callable[[ShardFolder], Mapping[str, Any]]" = lambda _: {},
) -> None:
    """Run a job and say what it wrote."""
    from tercet.scale.job import run_job

    with _progress(place.command, total) as advance:
        folder = run_job(task, rows, place.out, place.workers, finish=finish, on_progress=advance)
    _print(folder)


@contextmanager
def _progress(what: str, total: int | None) -> "Iterator[Callable[[int], None]]":
    try:
        with counting(what, total=total) as advance:
            yield advance
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "stopped; finished shards are kept: run the same command to resume"
        ) from None


def _print(folder: "ShardFolder") -> None:
    from tercet.files.structured import read_json
    from tercet.scale.shards import MANIFEST

    manifest = read_json(folder.path / MANIFEST)
    shards = len(folder.done)
    typer.echo(f"{folder.path}: {manifest['rows']:,} rows in {shards:,} shard{'s' * (shards > 1)}")
    for name, metric in manifest.get("metrics", {}).items():
        typer.echo(f"{name:10} {metric['value']:.4f} ± {metric['standard_error']:.4f}")
