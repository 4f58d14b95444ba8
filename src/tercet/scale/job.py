"""A job: rows in parts, each done by a worker and written as a shard."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tercet.errors import DataError, InputError
from tercet.records import Progress
from tercet.scale.parts import Part, parts_of
from tercet.scale.shards import ShardFolder
from tercet.scale.work import Record, Task
from tercet.settings.bulk import ROWS_PER_SHARD, WorkersConfig


class Done(NamedTuple):
    """A part and the table that a worker made of it."""

    part: Part
    table: Any


class Pool(Protocol):
    """Workers."""

    def facts(self) -> dict[str, Any]:
        """What all workers have in common, once their models are loaded."""

    def run(self, parts: Iterable[Part]) -> Iterator[Done]:
        """The parts as they get done, in any order. Only a few are taken ahead."""


class InProcess:
    """One worker: this process."""

    def __init__(self, task: Task) -> None:
        self._work = task.start("cpu")

    def facts(self) -> dict[str, Any]:
        """Those of the work."""
        return self._work.facts()

    def run(self, parts: Iterable[Part]) -> Iterator[Done]:
        """The parts in their order."""
        for part in parts:
            yield Done(part, self._work.run(part.records))


class Rows(NamedTuple):
    """The input of a job."""

    read: Callable[[], Iterable[Record]]
    """Reads the rows from the first one on."""
    description: Mapping[str, Any]
    """What a restarted job must have in common with this one: the command, its input and its options."""
    rows_per_shard: int = ROWS_PER_SHARD


def run_job(
    task: Task,
    rows: Rows,
    out: Path,
    workers: WorkersConfig | None = None,
    *,
    finish: Callable[[ShardFolder], Mapping[str, Any]] = lambda _: {},
    reuse: bool = False,
    on_progress: Progress | None = None,
) -> ShardFolder:
    """Do all parts of a job that the folder does not have yet; returns the folder of its shards.

    Args:
        finish: the results of all shards, for the manifest.
        reuse: whether a finished job is used as it is, instead of being an error.
        on_progress: called with the number of rows done since the last call.
    """
    folder = ShardFolder(out, {**rows.description, "rows_per_shard": rows.rows_per_shard}, reuse=reuse)
    progress = on_progress or (lambda _: None)
    with folder.writer(), _pool(task, workers or WorkersConfig()) as pool:
        folder.check_facts(pool.facts())
        for part, table in pool.run(_missing(rows, folder, progress)):
            if table.num_rows != len(part.records):
                raise InputError(f"a part of {len(part.records)} rows became {table.num_rows} rows")
            folder.write(table, number=part.number, first_row=part.first_row, digest=part.digest)
            progress(len(part.records))
        if not folder.done:
            raise DataError("the input has no rows: add at least one")
        folder.finish(finish(folder))
    return folder


@contextmanager
def _pool(task: Task, workers: WorkersConfig) -> Iterator[Pool]:
    """The workers, for the length of a job."""
    if not workers.needs_ray:
        yield InProcess(task)
        return
    from tercet.scale.ray_pool import ray_pool

    with ray_pool(task, workers) as pool:
        yield pool


def _missing(rows: Rows, folder: ShardFolder, progress: Progress) -> Iterator[Part]:
    """The parts without a shard, if the rows of the others are still the same."""
    earlier, count = dict(folder.done), 0
    for part in parts_of(rows.read(), rows.rows_per_shard):
        shard, count = earlier.get(part.number), count + 1
        if shard is None:
            yield part
        elif shard.input != part.digest:
            last = part.first_row + len(part.records) - 1
            raise InputError(
                f"{folder.path} is an unfinished job whose rows {part.first_row:,} to {last:,} differ from "
                "those "
                "of the input now: give the same input, or choose a new folder"
            )
        else:
            progress(len(part.records))
    if earlier and max(earlier) >= count:
        raise InputError(
            f"{folder.path} is an unfinished job with more rows than the input has now: give the same "
            "input, or "
            "choose a new folder"
        )
