"""A SQLite database whose rows have digests, and whose tables have totals that change with them."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

from tercet.errors import BrokenIndexError
from tercet.index.connection import file_state, is_writable, open_to_read, open_to_write
from tercet.index.database_errors import sqlite_errors
from tercet.index.forks import forked_error
from tercet.index.row_digests import COLUMNS, digest_sql, with_digests
from tercet.index.totals import NUMBERED, TABLES, Total, summed, total_sql

VALUES_PER_QUERY = 500
"""SQLite allows at least a thousand."""

DEFINITIONS = "SELECT type, name, tbl_name, sql FROM sqlite_master"
"""The tables and indexes of a database, and the statements that created them."""


class Tables:
    """A SQLite database in WAL mode: one process writes while others read. Threads may share it.

    All rows are written by ``insert_rows``, ``delete_rows`` and ``clear``, which keep digests and totals.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = RLock()
        self._commits = 0
        self._is_checked = False
        self._process = os.getpid()
        with sqlite_errors(file):
            self._connection = self._connect()

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

    def select_in(self, statement: str, values: list[Any]) -> Iterator[Any]:
        """The rows of a statement that ends in ``IN``, for any number of values."""
        for start in range(0, len(values), VALUES_PER_QUERY):
            part = values[start : start + VALUES_PER_QUERY]
            yield from self.query(f"{statement} ({', '.join('?' * len(part))})", part)

    def column(self, table: str, name: str = "number") -> list[Any]:
        """All values of a column, sorted."""
        return [value for (value,) in self.query(f"SELECT {name} FROM {table} ORDER BY {name}")]

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

    def insert_rows(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert new rows, in a transaction."""
        written = with_digests(table, rows) if table in COLUMNS else list(rows)
        if not written:
            return
        self._execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(written[0]))})", written)
        total = sum([row[-1] & 0xFFFFFFFF for row in written])
        last = max([row[0] for row in written]) if table in NUMBERED else -1
        change = "rows = rows + ?, total = total + ?, last = max(last, ?)"
        self._execute(f"UPDATE totals SET {change} WHERE name = ?", [(len(written), total, last, table)])

    def delete_rows(self, table: str, column: str, values: list[Any]) -> None:
        """Delete the rows that have one of these values in a column, in a transaction."""
        if not values:
            return
        statement = f"SELECT count(*), coalesce(sum({summed(table)}), 0) FROM {table} WHERE {column} IN"
        changes = [(rows, total, table) for rows, total in self.select_in(statement, values) if rows]
        self._execute("UPDATE totals SET rows = rows - ?, total = total - ? WHERE name = ?", changes)
        for _ in self.select_in(f"DELETE FROM {table} WHERE {column} IN", values):
            pass

    def clear(self, table: str) -> None:
        """Delete all rows of a table, in a transaction."""
        self.query(f"DELETE FROM {table}")
        self.record_total(table)

    def next_number(self, table: str = "candidates") -> int:
        """The next free number of a table; 0 in a new database."""
        joined = "totals LEFT JOIN sqlite_sequence USING (name)"
        rows = self.query(f"SELECT last, coalesce(seq, -1) FROM {joined} WHERE name = ?", [table])
        numbers = [number for row in rows for number in row if isinstance(number, int)]
        if len(numbers) < 2:
            raise BrokenIndexError(f'{self._file} has lost a total: run "tercet index repair"')
        return max(numbers) + 1

    def total(self, table: str) -> Total:
        """The recorded and the actual total of a table."""
        return Total(*self.query(total_sql(table))[0])

    def tables(self) -> list[str]:
        """The names of the tables that have totals."""
        existing = self.column("sqlite_master", "name")
        return [table for table in TABLES if table in existing]

    def record_total(self, table: str) -> None:
        """Make the present rows of a table those that it should have, in a transaction."""
        found = self.total(table)
        last = max(found.last if isinstance(found.last, int) else -1, found.actual_last)
        if table in NUMBERED:
            ((largest,),) = self.query(f"SELECT coalesce(max(number), -1) FROM {table}")
            last = max(last, largest)
            self._execute("DELETE FROM sqlite_sequence WHERE name = ?", [(table,)])
            if last >= 0:
                self._execute("INSERT INTO sqlite_sequence VALUES (?, ?)", [(table, last)])
        row = (table, found.actual_rows, found.actual_total, last)
        self._execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?)", [row])

    def modified(self, table: str) -> list[Any]:
        """The first column of the rows of a table that differ from their digests."""
        first = next(iter(COLUMNS[table]))
        rows = self.query(f"SELECT {first} FROM {table} WHERE digest IS NOT {digest_sql(table)}")
        return [value for (value,) in rows]

    def is_modified(self, table: str) -> bool:
        """Whether a table with digests does not have the rows that were written."""
        return bool(self.modified(table)) or not self.total(table).is_right

    def restore_types(self, table: str) -> None:
        """Give the values of modified rows the types of their columns, in a transaction."""
        casts = ", ".join(f"{name} = CAST({name} AS {type_})" for name, type_ in COLUMNS[table].items())
        self.query(f"UPDATE {table} SET {casts} WHERE digest IS NOT {digest_sql(table)}")

    def problems(self) -> list[str]:
        """What SQLite's integrity check reports."""
        messages = [message for (message,) in self.query("PRAGMA integrity_check")]
        return [] if messages == ["ok"] else [f"database: {message}" for message in messages]

    def check_integrity(self) -> None:
        """Raise if the database is malformed. It is read once; writing to a damaged one would lose more."""
        if not self._is_checked and self.problems():
            raise BrokenIndexError(f'{self._file} is malformed: run "tercet index repair"')
        self._is_checked = True

    def check_schema(self, schema: str) -> None:
        """Raise if a table or an index that a schema creates is missing or modified.

        SQLite's check does not notice it: rows could still be written, but not be read again.
        """
        modified = sorted({name for _, name, _, _ in _definitions(schema) - set(self.query(DEFINITIONS))})
        if modified:
            raise BrokenIndexError(
                f"{self._file}: the definition of {', '.join(modified)} was modified: restore the index from "
                'a backup, or build it again with "tercet index build"'
            )

    def copy(self, file: Path) -> None:
        """Write a copy to a new file. Only SQLite may read the file: closing it drops SQLite's locks."""
        self._check_process()
        with self._lock, sqlite_errors(self._file), closing(open_to_write(file)) as target:
            self._connection.backup(target)

    def rebuild(self) -> None:
        """Write the database again from its tables, which mends indexes and unused pages."""
        self.query("REINDEX")
        self.query("VACUUM")

    def _create(self, schema: str) -> None:
        """Create tables and their totals."""
        with self._lock, sqlite_errors(self._file):
            self._connection.executescript(f"BEGIN; {schema} COMMIT;")
        with self.transaction():
            for table in self.tables():
                self.record_total(table)
        self._is_checked = True

    def _execute(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once per row of values."""
        self._check_process()
        if not self._connection.in_transaction:
            raise RuntimeError("rows and their totals change in one transaction")
        with self._lock, sqlite_errors(self._file):
            self._connection.executemany(statement, rows)

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

    def _check_process(self) -> None:
        """Raise in a forked process, where SQLite's connection would corrupt the file."""
        if self._process != os.getpid():
            raise forked_error(self._file.parent)


@cache
def _definitions(schema: str) -> frozenset[tuple[str, str, str, str | None]]:
    """The rows that ``DEFINITIONS`` returns of a new database with a schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return frozenset(connection.execute(DEFINITIONS).fetchall())
