"""Connections to SQLite and forks.

SQLite counts the locks of a process in memory, per file. A fork copies these counts without the locks, so a
forked process that opens the same file again takes none, and a write can be lost. Files that were open at the
moment of a fork are therefore refused in the new process.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

from tercet.errors import InputError

FileKey: TypeAlias = tuple[int, int]
"""Device and inode, by which SQLite recognizes a file too."""

_changing = RLock()
"""Held while a connection opens or closes, and by a fork, which would copy it half open."""
_inherited: set[FileKey] = set()
"""The files that were open when this process was forked."""
_kept: list["Connection | None"] = []
"""The connections of these files: SQLite must not even close them."""


class Connection(sqlite3.Connection):
    """A connection whose file is known to be open until it is closed."""

    def close(self) -> None:
        """Close the file."""
        with _changing:
            super().close()
            _open.pop(id(self), None)

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it was never opened
            self.close()


class OpenFile(NamedTuple):
    """A file, and the connection that has it open."""

    key: FileKey
    connection: "ref[Connection]"


_open: dict[int, OpenFile] = {}
"""The files that are open, by the ``id`` of the connection."""


def connect(file: Path, uri: str, **options: Any) -> Connection:
    """A connection to a file, which must not have been open when this process was forked."""
    with _changing:
        if file.exists() and _key(file) in _inherited:
            raise forked_error(file.parent)
        connection = sqlite3.connect(uri, uri=True, factory=Connection, **options)
        _open[id(connection)] = OpenFile(_key(file), ref(connection))
        return connection


def forked_error(folder: Path) -> InputError:
    """The error of an index that must not be used in a forked process."""
    return InputError(
        f"{folder} was open when this process was forked, and SQLite's locks do not survive that: close it "
        'before the fork, or start processes with multiprocessing.get_context("spawn")'
    )


def _key(file: Path) -> FileKey:
    stat = file.stat()
    return stat.st_dev, stat.st_ino


def _start_child() -> None:
    _inherited.update(each.key for each in _open.values())
    _kept.extend(each.connection() for each in _open.values())
    _open.clear()
    _changing.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(
        before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_start_child
    )
