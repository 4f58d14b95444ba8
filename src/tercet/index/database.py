"""The SQLite tables of a store: texts, ids, and the files that belong to it."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from tercet.errors import BrokenIndexError, InputError
from tercet.files.structured import json_text
from tercet.index.base import FORMAT, check_format
from tercet.index.connection import digest_sql, file_state, is_writable, open_to_read, open_to_write
from tercet.index.database_errors import sqlite_errors
from tercet.index.forks import forked_error
from tercet.index.items import Item
from tercet.records import Floats, Ints

SCHEMA = """
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    digest BLOB NOT NULL
);
CREATE TABLE segments (name TEXT PRIMARY KEY, manifest_digest TEXT NOT NULL);
CREATE TABLE buffered (number INTEGER PRIMARY KEY, vector BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE removed (number INTEGER PRIMARY KEY);
CREATE TABLE pending (number INTEGER PRIMARY KEY);
"""
"""``number`` identifies a candidate or a vector in all tables and files, and is never reused. ``metadata``
describes the store, ``candidates.metadata`` a candidate. ``buffered`` vectors are in no segment yet,
``removed`` ones still are in one, and ``pending`` candidates differ from the lexical index. ``digest`` is of
the other columns of its row, ``manifest_digest`` of the file that lists the files of a segment."""

DIGESTED = {
    "metadata": ("name", "value"),
    "candidates": ("number", "id", "text", "metadata"),
    "buffered": ("number", "vector"),
    "chunks": ("number", "candidate", "start", "stop"),
}
"""The columns that the digest of a row covers, by table."""

OLD_METADATA = "facts"
"""The name of the table ``metadata`` in format 1."""

VALUES_PER_QUERY = 500
"""SQLite allows at least a thousand."""


class Database:
    """A SQLite database in WAL mode: one process writes while others read. Threads may share it."""

    def __init__(self, file: Path, *, create: bool = False, more_tables: str = "") -> None:
        if not create and not file.is_file():
            raise InputError(f'{file.parent} is not an index: build one with "tercet index build"')
        self._file = file
        self._lock = RLock()
        self._commits = 0
        self._is_checked = create
        self._process = os.getpid()
        with sqlite_errors(file):
            self._connection = self._connect()
            if create:
                self._connection.executescript(f"BEGIN; {SCHEMA} {more_tables} COMMIT;")
                self.set_metadata({"format": FORMAT})
            self._check_format()

    def close(self) -> None:
        """Close the file."""
        if self._process == os.getpid():
            self._connection.close()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        """Apply all changes of the block or none; reads in the block see one state."""
        self._check_process()
        with self._lock, sqlite_errors(self._file):
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                self._commits += write
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk makes SQLite roll back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement returns."""
        self._check_process()
        with self._lock, sqlite_errors(self._file):
            return self._connection.execute(statement, values).fetchall()

    def execute(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once per row of values."""
        self._check_process()
        with self._lock, sqlite_errors(self._file):
            self._connection.executemany(statement, rows)

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes with every transaction, of this and of other processes.

        SQLite's own version covers only the changes of other connections. A file that was opened as immutable
        has no version, so it is opened again if another process has changed it.
        """
        if self._is_immutable and self._seen != file_state(self._file):
            self._reopen()
        ((version,),) = self.query("PRAGMA data_version")
        return int(version), self._commits

    def metadata(self, name: str) -> Any:
        """A value of the store's metadata; None if it is not set."""
        rows = self.query("SELECT value FROM metadata WHERE name = ?", [name])
        return self._decoded(rows[0][0], f"its {name}") if rows else None

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""
        rows = [(name, json_text(value)) for name, value in metadata.items()]
        self._insert("metadata", rows, verb="INSERT OR REPLACE")

    def count(self) -> int:
        """The number of candidates."""
        ((count,),) = self.query("SELECT count(*) FROM candidates")
        return int(count)

    def next_number(self, table: str = "candidates") -> int:
        """The next free number of a table; 0 in a new database."""
        rows = self.query("SELECT seq FROM sqlite_sequence WHERE name = ?", [table])
        return int(rows[0][0]) + 1 if rows else 0

    def insert(self, numbers: Ints, rows: Sequence[tuple[str, str, str]]) -> None:
        """Insert candidates: their ids, texts and metadata."""
        numbered = ((number, *row) for number, row in zip(numbers.tolist(), rows, strict=True))
        self._insert("candidates", numbered)

    def insert_chunks(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Insert chunks: their numbers, the numbers of their candidates, first and last characters."""
        self._insert("chunks", rows)

    def replace_metadata(self, rows: Iterable[tuple[str, str]]) -> None:
        """Change the metadata of candidates: pairs of the new metadata and the id."""
        digest = digest_sql(["number", "id", "text", "?1"])
        self.execute(f"UPDATE candidates SET metadata = ?1, digest = {digest} WHERE id = ?2", rows)

    def delete(self, numbers: Ints) -> None:
        """Delete candidates; their vectors are deleted by ``delete_vectors``."""
        self.execute("DELETE FROM candidates WHERE number = ?", _as_rows(numbers))

    def delete_vectors(self, numbers: Ints) -> None:
        """Delete vectors from the buffer, and mark those as removed that are in a segment."""
        rows = _as_rows(numbers)
        unbuffered = "NOT EXISTS (SELECT 1 FROM buffered WHERE number = ?1)"
        self.execute(f"INSERT OR IGNORE INTO removed SELECT ?1 WHERE {unbuffered}", rows)
        self.execute("DELETE FROM buffered WHERE number = ?", rows)

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""
        rows = self.select_in(
            "SELECT number, id, text, metadata FROM candidates WHERE number IN", numbers.tolist()
        )
        return {
            number: Item(id_, text, self._decoded(metadata, f"the metadata of {id_!r}"))
            for number, id_, text, metadata in rows
        }

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of candidates by id; unknown ids are left out."""
        return dict(self.select_in("SELECT id, number FROM candidates WHERE id IN", list(ids)))

    def column(self, table: str, name: str = "number") -> list[Any]:
        """All values of a column, sorted."""
        return [value for (value,) in self.query(f"SELECT {name} FROM {table} ORDER BY {name}")]

    def all_numbers(self, table: str) -> Ints:
        """All numbers in a table, sorted."""
        return np.array(self.column(table), dtype=np.int64)

    def buffered(self, width: int) -> tuple[Ints, Floats]:
        """The numbers ``[C]`` and vectors ``[C, D]`` that are in no segment yet."""
        rows = self.query("SELECT number, vector FROM buffered ORDER BY number")
        numbers = np.array([number for number, _ in rows], dtype=np.int64)
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f4").reshape(-1, width)
        return numbers, vectors

    def add_buffered(self, numbers: Ints, vectors: Floats) -> None:
        """Store vectors until there are enough for a segment."""
        rows = zip(numbers.tolist(), (vector.astype("<f4").tobytes() for vector in vectors), strict=True)
        self._insert("buffered", rows)

    def add_segment(self, name: str, manifest_digest: str) -> None:
        """Make a segment that was written part of the store."""
        self.execute("INSERT INTO segments VALUES (?, ?)", [(name, manifest_digest)])

    def add_pending(self, numbers: Ints) -> None:
        """Record that the lexical index has to be updated for these candidates."""
        self.execute("INSERT OR IGNORE INTO pending VALUES (?)", _as_rows(numbers))

    def delete_pending(self, numbers: Ints) -> None:
        """Record that the lexical index was updated for these candidates."""
        self.execute("DELETE FROM pending WHERE number = ?", _as_rows(numbers))

    def clear(self, table: str) -> None:
        """Delete all rows of a table."""
        self.execute(f"DELETE FROM {table}", [()])

    def select_in(self, statement: str, values: list[Any]) -> Iterator[Any]:
        """The rows of a statement that ends in ``IN``, for any number of values."""
        for start in range(0, len(values), VALUES_PER_QUERY):
            part = values[start : start + VALUES_PER_QUERY]
            yield from self.query(f"{statement} ({', '.join('?' * len(part))})", part)

    def problems(self) -> list[str]:
        """What SQLite's integrity check reports."""
        messages = [message for (message,) in self.query("PRAGMA integrity_check")]
        return [] if messages == ["ok"] else [f"database: {message}" for message in messages]

    def check_integrity(self) -> None:
        """Raise if the database is malformed. It is read once; writing to a damaged one would lose more."""
        if not self._is_checked and self.problems():
            raise BrokenIndexError(f'{self._file} is malformed: run "tercet index repair"')
        self._is_checked = True

    def copy(self, file: Path) -> None:
        """Write a copy to a new file. Only SQLite may read the file: closing it drops SQLite's locks."""
        self._check_process()
        with self._lock, sqlite_errors(self._file), closing(open_to_write(file)) as target:
            self._connection.backup(target)

    def rebuild(self) -> None:
        """Write the database again from its tables, which mends indexes and unused pages."""
        self.query("REINDEX")
        self.query("VACUUM")

    def modified(self, table: str) -> list[Any]:
        """The first column of the rows of a table that differ from their digests."""
        columns = DIGESTED[table]
        rows = self.query(f"SELECT {columns[0]} FROM {table} WHERE digest != {digest_sql(columns)}")
        return [value for (value,) in rows]

    def _connect(self) -> sqlite3.Connection:
        self._seen, self._is_immutable = file_state(self._file), False
        if is_writable(self._file):
            return open_to_write(self._file)
        connection, self._is_immutable = open_to_read(self._file)
        return connection

    def _reopen(self) -> None:
        with self._lock, sqlite_errors(self._file):
            self._connection.close()
            self._connection = self._connect()
            self._commits += 1

    def _insert(self, table: str, rows: Iterable[Sequence[Any]], *, verb: str = "INSERT") -> None:
        values = [f"?{position}" for position in range(1, len(DIGESTED[table]) + 1)]
        self.execute(f"{verb} INTO {table} VALUES ({', '.join(values)}, {digest_sql(values)})", rows)

    def _decoded(self, value: str, what: str) -> Any:
        try:
            return json.loads(value)
        except ValueError:
            raise BrokenIndexError(
                f'{self._file}: {what} is not valid JSON: run "tercet index verify {self._file.parent}"'
            ) from None

    def _check_process(self) -> None:
        """Raise in a forked process, where SQLite's connection would corrupt the file."""
        if self._process != os.getpid():
            raise forked_error(self._file.parent)

    def _check_format(self) -> None:
        is_old = OLD_METADATA in self.column("sqlite_master", "name")
        check_format(self._file.parent, 1 if is_old else self.metadata("format"))


def _as_rows(numbers: Ints) -> list[tuple[int]]:
    return [(number,) for number in numbers.tolist()]
