"""Errors of SQLite by what they mean: a wrong request, a disk that cannot be written, or a damaged file."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tercet.errors import BrokenIndexError, InputError, OutputError, TercetError

UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
DAMAGED_MESSAGES = ("Could not decode to UTF-8", "no such ")
"""Messages without a code of their own begin so if a text or the schema is damaged."""
MALFORMED = "malformed JSON"
"""The message of a condition on metadata that is not JSON."""
PRIMARY = 0xFF
"""The bits of an error code that tell its class; the others tell details."""


@contextmanager
def sqlite_errors(file: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, file) from None
    except OverflowError as error:  # an integer that SQLite cannot hold
        raise InputError(f"cannot search {file.parent}: {error}") from None


def _explained(error: sqlite3.Error, file: Path) -> TercetError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & PRIMARY
    if code in UNWRITABLE:
        return OutputError(f"cannot write to {file.parent}, or read it: {error}")
    if code in BUSY:
        return OutputError(f"{file.parent} is locked ({error}): try again")
    if code in DAMAGED or str(error).startswith(DAMAGED_MESSAGES):
        return BrokenIndexError(f"{file} is not a valid database ({error}): restore it from a backup")
    if str(error).startswith(MALFORMED):
        return BrokenIndexError(f'{file} has metadata that is not JSON: run "tercet index repair"')
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return InputError(f"cannot read {file.parent} ({error}): open it again")
    return InputError(f"the database of {file.parent} cannot answer this request: {error}")
