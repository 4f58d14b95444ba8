"""``tercet bulk``: many rows to Parquet shards, on this machine or on a Ray cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from tercet.settings.bulk import ROWS_PER_SHARD, WorkersConfig
from tercet.settings.files import FileConfig
from tercet.settings.models import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tercet.scale.records import Reader
    from tercet.scale.shards import ShardFolder
    from tercet.scale.work import Task

bulk = typer.Typer(
    name="bulk",
    help="Encode, score, label, mine or evaluate many rows, on this machine or on a Ray cluster.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

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
    str | None, typer.Option("--id-column", help="The column with the ids.", show_default="id, or the row's number")
]


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
    from tercet.scale.records import text_records
    from tercet.scale.work import Task
    from tercet.settings.bulk import EncodeConfig

    read = {"column": column, "id_column": id_column, "skip_empty": skip_empty, "contexts": side == "context"}
    task = Task(Encode, EncodeConfig(model=_model(model), precision=precision, side=side))
    _run(
        "encode",
        task,
        source,
        out,
        lambda rows: text_records(rows, **read),
        read,
        FileConfig(format=file_format, delimiter=delimiter, encoding=encoding),
        _workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard,
    )


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
    from tercet.scale.records import pair_records
    from tercet.scale.score import Score
    from tercet.scale.work import Task
    from tercet.settings.bulk import ScoreConfig

    read = {
        "context": context_column,
        "candidate": candidate_column,
        "id_column": id_column,
        "skip_empty": skip_empty,
    }
    _run(
        "score",
        Task(Score, ScoreConfig(model=_model(model), precision=precision)),
        source,
        out,
        lambda rows: pair_records(rows, **read),
        read,
        FileConfig(format=file_format, delimiter=delimiter, encoding=encoding),
        _workers(address, workers, gpu_workers, cpus_per_worker),
        rows_per_shard,
    )
