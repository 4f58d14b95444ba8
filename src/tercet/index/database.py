"""The SQLite tables of a store: texts, ids, and the files that belong to it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tercet.errors import BrokenIndexError, InputError
from tercet.files.structured import json_text
from tercet.index.base import check_format
from tercet.index.items import Item
from tercet.index.tables import Tables
from tercet.index.totals import TOTALS
from tercet.inputs import listed
from tercet.records import Floats, Ints

SCHEMA = """
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest INTEGER NOT NULL);
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    digest INTEGER NOT NULL
);
CREATE TABLE segments (name TEXT PRIMARY KEY, manifest_digest TEXT NOT NULL, digest INTEGER NOT NULL);
CREATE TABLE buffered (number INTEGER PRIMARY KEY, vector BLOB NOT NULL, digest INTEGER NOT NULL);
CREATE TABLE removed (number INTEGER PRIMARY KEY);
CREATE TABLE pending (number INTEGER PRIMARY KEY);
"""
"""``number`` identifies a candidate or a vector in all tables and files, and is never reused. ``metadata``
describes the store, ``candidates.metadata`` a candidate. ``buffered`` vectors are in no segment yet,
``removed`` ones still are in one, and ``pending`` candidates differ from the lexical index. ``digest`` is of
the other columns of its row, ``manifest_digest`` of the file that lists the files of a segment. An index is
refused if its statements differ from these in any character, so a change needs another ``FORMAT``."""

SHOWN = 5
"""Names of settings that a message shows."""

FORMAT = 3
"""Version of the tables, and of the folder of a store."""

OLD_METADATA = "facts"
"""The name of the table ``metadata`` in format 1."""


class Database(Tables):
    """The tables of a store. Rows change in transactions only."""

    def __init__(self, file: Path, *, create: bool = False, more_tables: str = "") -> None:
        if not create and not file.is_file():
            raise InputError(f'{file.parent} is not an index: build one with "tercet index build"')
        super().__init__(file)
        if create:
            self._create(f"{SCHEMA} {TOTALS} {more_tables}")
            with self.transaction():
                self.set_metadata({"format": FORMAT})
        self._check_format()

    def check_tables(self, more_tables: str) -> None:
        """Raise if a table was modified by another program, or is damaged."""
        self.check_schema(f"{SCHEMA} {TOTALS} {more_tables}")

    def check_lists(self) -> None:
        """Raise if the settings or the list of segments are not those that were written.

        Both are short, so every writer reads them.
        """
        if self.is_modified("metadata"):
            names = self.modified("metadata")
            which = f" ({listed(names, most=SHOWN)})" if names else ""
            raise BrokenIndexError(
                f"{self._file}: the settings of the index were modified{which}: nothing was written; run "
                '"tercet index repair", or restore the index from a backup'
            )
        if self.is_modified("segments"):
            raise BrokenIndexError(
                f'{self._file}: the list of segments was modified: run "tercet index repair"'
            )

    def metadata(self, name: str) -> Any:
        """A value of the store's metadata; None if it is not set."""
        rows = self.query("SELECT value FROM metadata WHERE name = ?", [name])
        return self._decoded_setting(name, rows[0][0]) if rows else None

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""
        rows = [(name, json_text(value)) for name, value in metadata.items()]
        self.delete_rows("metadata", "name", list(metadata))
        self.insert_rows("metadata", rows)

    def count(self) -> int:
        """The number of candidates."""
        ((count,),) = self.query("SELECT count(*) FROM candidates")
        return int(count)

    def insert(self, numbers: Ints, rows: Sequence[tuple[str, str, str]]) -> None:
        """Insert candidates: their ids, texts and metadata."""
        numbered = ((number, *row) for number, row in zip(numbers.tolist(), rows, strict=True))
        self.insert_rows("candidates", numbered)

    def replace_metadata(self, metadata: Mapping[str, str]) -> None:
        """Change the metadata of candidates, by id."""
        rows = list(self.select_in("SELECT number, id, text FROM candidates WHERE id IN", list(metadata)))
        self.delete_rows("candidates", "id", list(metadata))
        self.insert_rows("candidates", [(*row, metadata[row[1]]) for row in rows])

    def clear_metadata(self, numbers: Ints) -> None:
        """Clear the metadata of candidates; their digests stay, so they still count as modified."""
        rows = [(number,) for number in numbers.tolist()]
        self._execute("UPDATE candidates SET metadata = '{}' WHERE number = ?", rows)

    def delete(self, numbers: Ints) -> None:
        """Delete candidates; their vectors are deleted by ``delete_vectors``."""
        self.delete_rows("candidates", "number", numbers.tolist())

    def delete_vectors(self, numbers: Ints) -> None:
        """Delete vectors from the buffer, and mark those as removed that are in a segment."""
        rows = self.select_in("SELECT number FROM buffered WHERE number IN", numbers.tolist())
        buffered = {number for (number,) in rows}
        self.delete_rows("buffered", "number", list(buffered))
        self._note("removed", [number for number in numbers.tolist() if number not in buffered])

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""
        rows = self.select_in(
            "SELECT number, id, text, metadata FROM candidates WHERE number IN", numbers.tolist()
        )
        return {number: self._item(*row) for number, *row in rows}

    def texts(self, numbers: Ints) -> dict[int, str]:
        """The texts of candidates by number; unknown numbers are left out."""
        return dict(self.select_in("SELECT number, text FROM candidates WHERE number IN", numbers.tolist()))

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of candidates by id; unknown ids are left out."""
        return dict(self.select_in("SELECT id, number FROM candidates WHERE id IN", list(ids)))

    def all_numbers(self, table: str) -> Ints:
        """All numbers in a table, sorted."""
        return np.array(self.column(table), dtype=np.int64)

    def buffered(self, width: int) -> tuple[Ints, Floats]:
        """The numbers ``[C]`` and vectors ``[C, D]`` that are in no segment yet."""
        rows = self.query("SELECT number, vector FROM buffered ORDER BY number")
        numbers = np.array([number for number, _ in rows], dtype=np.int64)
        try:
            joined = b"".join([vector for _, vector in rows])
            return numbers, np.frombuffer(joined, dtype="<f4").reshape(len(rows), width)
        except (TypeError, ValueError):
            raise BrokenIndexError(f'{self._file}: a vector is damaged: run "tercet index repair"') from None

    def add_buffered(self, numbers: Ints, vectors: Floats) -> None:
        """Store vectors until there are enough for a segment."""
        rows = zip(numbers.tolist(), (vector.astype("<f4").tobytes() for vector in vectors), strict=True)
        self.insert_rows("buffered", rows)

    def add_segment(self, name: str, manifest_digest: str) -> None:
        """Make a segment that was written part of the store."""
        self.insert_rows("segments", [(name, manifest_digest)])

    def add_pending(self, numbers: Ints) -> None:
        """Record that the lexical index has to be updated for these candidates."""
        self._note("pending", numbers.tolist())

    def delete_pending(self, numbers: Ints) -> None:
        """Record that the lexical index was updated for these candidates."""
        self.delete_rows("pending", "number", numbers.tolist())

    def unreadable_metadata(self, numbers: Ints) -> list[int]:
        """The numbers of those candidates whose metadata is not a JSON object."""
        statement = "SELECT number, CAST(metadata AS BLOB) FROM candidates WHERE number IN"
        rows = self.select_in(statement, numbers.tolist())
        return [number for number, metadata in rows if _object_in(metadata) is None]

    def _note(self, table: str, numbers: list[int]) -> None:
        """Insert numbers into a table of numbers, which may have some already."""
        self.delete_rows(table, "number", numbers)
        self.insert_rows(table, [(number,) for number in numbers])

    def _item(self, id_: str, text: str, metadata: str) -> Item:
        decoded = _object_in(metadata)
        if decoded is None or not isinstance(id_, str) or not isinstance(text, str):
            what = "the metadata of" if decoded is None else "the text of"
            kind = "a JSON object" if decoded is None else "a string"
            raise BrokenIndexError(f'{self._file}: {what} {id_!r} is not {kind}: run "tercet index repair"')
        return Item(id_, text, decoded)

    def _decoded_setting(self, name: str, value: str) -> Any:
        try:
            return json.loads(value)
        except ValueError:
            raise BrokenIndexError(
                f"{self._file}: its {name} is not valid JSON: restore the index from a backup, or build it "
                'again with "tercet index build"'
            ) from None

    def _check_format(self) -> None:
        is_old = OLD_METADATA in self.column("sqlite_master", "name")
        check_format(self._file.parent, 1 if is_old else self.metadata("format"), reads=FORMAT)


def _object_in(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object in a string; None if there is another value, or no JSON."""
    try:
        value = json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
