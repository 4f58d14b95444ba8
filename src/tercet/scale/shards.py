"""The output folder of a job: Parquet shards, a line per finished shard, and a manifest.

A shard appears under its name complete. Then its line is appended to the list and synced: from then on the
shard is done, and a restarted job keeps it. The manifest says at first which job writes here, and in the end
what it wrote.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tercet.errors import InputError, OutputError
from tercet.extras import require
from tercet.files.atomic import check_parent, new_file, writing
from tercet.files.digest import file_digest
from tercet.files.lock import exclusive
from tercet.files.structured import json_text, read_json, write_json

MANIFEST, FINISHED_SHARDS, LOCK = "manifest.json", "shards.jsonl", ".lock"
FORMAT = 1
"""Version of the manifest and of the list of shards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """A finished part of a job."""

    number: int
    first_row: int
    rows: int
    input: str
    """The digest of its rows in the input."""
    digest: str
    """SHA-256 of the file."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return shard_name(self.number)


def shard_name(number: int) -> str:
    """The name of the file of a part."""
    return f"shard-{number:06}.parquet"


class ShardFolder:
    """The output of one job. Only one process may write to it."""

    def __init__(self, path: Path, job: Mapping[str, Any], *, reuse: bool = False) -> None:
        self.path = path
        self._reuse = reuse
        self.job = dict(job)
        self.done: dict[int, Shard] = {}

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Be the only writer, in a new folder or that of the same unfinished job."""
        check_parent(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path} is a file: a job needs a folder")
        is_new = not self.path.exists()
        if not is_new and not (self.path / MANIFEST).is_file() and _has_others(self.path):
            raise OutputError(f"{self.path} is not the folder of a bulk job: choose a new folder")
        with writing(self.path):
            self.path.mkdir(exist_ok=True)
        with exclusive(self.path / LOCK, self._refuse):
            self._start()
            try:
                yield
            finally:
                if is_new and not self.done:  # a typo must not leave a folder behind
                    self._remove_empty()

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        """Record the facts of the workers; raise if the shards that exist were made with others."""
        recorded = read_json(self.path / MANIFEST).get("facts")
        if recorded is not None and recorded != facts and self.done:
            raise InputError(
                f"{self.path} was begun with {json_text(recorded)}, and the model is now "
                f"{json_text(dict(facts))}: "
                "use the same model, or choose a new folder"
            )
        self.job["facts"] = dict(facts)
        write_json(self.path / MANIFEST, {**self.job, "finished": False})

    def write(self, table: Any, *, number: int, first_row: int, digest: str) -> None:
        """Write the shard of a part and record it."""
        parquet = require("pyarrow.parquet", extra="parquet", purpose="writing shards")
        file = self.path / shard_name(number)
        with new_file(file, overwrite=True) as partial:
            parquet.write_table(table, partial)
        shard = Shard(
            number=number, first_row=first_row, rows=table.num_rows, input=digest, digest=file_digest(file)
        )
        with writing(self.path), (self.path / FINISHED_SHARDS).open("ab") as lines:
            lines.write(f"{json_text(asdict(shard))}\n".encode())
            lines.flush()
            os.fsync(lines.fileno())
        self.done[number] = shard

    def finish(self, results: Mapping[str, Any]) -> None:
        """Write what the job has made into the manifest."""
        shards = [self.done[number] for number in sorted(self.done)]
        listed = [{"file": shard.name, **asdict(shard)} for shard in shards]
        rows = sum(shard.rows for shard in shards)
        totals = {"finished": True, "rows": rows, **results, "shards": listed}
        write_json(self.path / MANIFEST, {**self.job, **totals})

    def remove(self) -> None:
        """Delete the shards and the folder; files of others stay."""
        for shard in self.done.values():
            (self.path / shard.name).unlink(missing_ok=True)
        self._remove_empty()

    def _start(self) -> None:
        """Read what an earlier run of the job has finished, or write the first manifest."""
        manifest = self.path / MANIFEST
        self.job = {"format": FORMAT, **self.job}
        if not manifest.is_file():
            write_json(manifest, {**self.job, "finished": False})
            return
        found = read_json(manifest)
        if found.get("finished") and not self._reuse:
            raise OutputError(f"{self.path} has a finished job: choose another folder, or remove it first")
        different = [name for name, value in _plain(self.job).items() if found.get(name) != value]
        if different:
            changes = ", ".join(f"{name} {json_text(found.get(name))}" for name in different)
            raise OutputError(
                f"{self.path} has an unfinished job, started with {changes}: run that command again, or "
                "remove "
                "the folder and start anew"
            )
        if "facts" in found:
            self.job["facts"] = found["facts"]
        self._read_finished()

    def _read_finished(self) -> None:
        """The recorded shards whose files are still whole; the others are made again."""
        lines = self.path / FINISHED_SHARDS
        for line in lines.read_bytes().splitlines(keepends=True) if lines.is_file() else []:
            if not line.endswith(b"\n"):  # its process was killed: the next one would be appended to it
                os.truncate(lines, lines.stat().st_size - len(line))
                break
            shard = Shard(**json.loads(line))
            file = self.path / shard.name
            if file.is_file() and file_digest(file) == shard.digest:
                self.done[shard.number] = shard

    def _remove_empty(self) -> None:
        """Delete a folder without shards."""
        for name in (MANIFEST, FINISHED_SHARDS, LOCK):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _refuse(self) -> None:
        raise OutputError(f"another process is writing to {self.path}: wait until it has finished")


def _has_others(path: Path) -> bool:
    return any(file.name != LOCK for file in path.iterdir())


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as JSON reads it back: tuples become lists."""
    plain: dict[str, Any] = json.loads(json_text(dict(content)))
    return plain
