"""Connections to the SQLite file of a store: for writing, or for reading where nothing can be written."""

import os
import sqlite3
from pathlib import Path

from tercet.errors import OutputError
from tercet.index.forks import connect
from tercet.index.row_digests import row_digest
from tercet.index.where_sql import sql_number


def is_writable(file: Path) -> bool:
    """Whether this process may write to a file and create others beside it."""
    return os.access(file.parent, os.W_OK) and (not file.exists() or os.access(file, os.W_OK))


def open_to_write(file: Path) -> sqlite3.Connection:
    """A connection in WAL mode. The file is created if it is missing."""
    connection = _open(file, "rwc")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def open_to_read(file: Path) -> tuple[sqlite3.Connection, bool]:
    """A connection that never writes, and whether the file was opened as immutable.

    A database in WAL mode needs two files beside it. If they do not exist and cannot be created, the file is
    opened as immutable. That would ignore changes in a log, so a log with changes is an error.
    """
    try:
        connection = _open(file, "ro")
        connection.execute("SELECT 1 FROM sqlite_master")
        return connection, False
    except sqlite3.OperationalError:
        log = log_of(file)
        if log.is_file() and log.stat().st_size:
            raise OutputError(
                f"{file.parent} is read-only, but its last changes are only in {log.name}: open it once "
                "where it can be written, or copy it to such a folder"
            ) from None
        return _open(file, "ro&immutable=1"), True


def file_state(file: Path) -> tuple[float, ...]:
    """Changes when a database or its log is written to."""
    stats = [path.stat() for path in (file, log_of(file)) if path.is_file()]
    return tuple(value for stat in stats for value in (stat.st_ino, stat.st_size, stat.st_mtime_ns))


def log_of(file: Path) -> Path:
    """The write-ahead log of a database."""
    return file.with_name(f"{file.name}-wal")


def _open(file: Path, mode: str) -> sqlite3.Connection:
    connection = connect(
        file,
        f"{file.absolute().as_uri()}?mode={mode}",
        check_same_thread=False,
        isolation_level=None,
        timeout=30,
    )
    connection.create_function("as_number", 1, sql_number, deterministic=True)
    connection.create_function("row_digest", -1, row_digest, deterministic=True)
    return connection
