"""The tables of a store: texts, ids, and which files belong to it. One transaction is one step, or none."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from tercet.errors import BrokenIndexError, InputError, OutputError
from tercet.index.items import Item
from tercet.records import Counts, Floats

SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL
);
CREATE TABLE segments (name TEXT PRIMARY KEY);
CREATE TABLE fresh (number INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE removed (number INTEGER PRIMARY KEY);
CREATE TABLE unsaid (number INTEGER PRIMARY KEY);
"""
"""``number`` is never given twice. ``fresh`` are vectors in no segment yet, ``removed`` rows of segments that
are gone, ``unsaid`` candidates that the index of words has not heard of."""

AT_ONCE = 500
"""Values in one question: SQLite allows a thousand and more."""


class Database:
    """SQLite in WAL mode: readers go on while one process writes."""

    def __init__(self, file: Path, *, create: bool = False) -> None:
        if not create and not file.is_file():
            raise InputError(f"{file.parent} is no index: make one with tercet index build")
        self._file = file
        self._lock = RLock()
        self._connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None, timeout=30)
        with said(file):
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            if create:
                self._connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            self.ask("SELECT count(*) FROM facts")

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        """All of the block's changes, or none of them; a reader sees one state throughout."""
        with self._lock, said(self._file):
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite ends it itself when there is no room
                    self._connection.execute("ROLLBACK")
                raise

    def ask(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that answer a question."""
        with self._lock, said(self._file):
            return self._connection.execute(question, values).fetchall()

    def tell(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """A statement for each row."""
        with self._lock, said(self._file):
            self._connection.executemany(statement, rows)

    @property
    def version(self) -> int:
        """Another number whenever another process has changed something."""
        ((version,),) = self.ask("PRAGMA data_version")
        return int(version)

    def fact(self, name: str) -> Any:
        """What is written down under a name, None if nothing is."""
        found = self.ask("SELECT value FROM facts WHERE name = ?", [name])
        return json.loads(found[0][0]) if found else None

    def set_facts(self, facts: Mapping[str, Any]) -> None:
        """Write facts down."""
        rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in facts.items()]
        self.tell("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def count(self) -> int:
        """How many candidates there are."""
        ((count,),) = self.ask("SELECT count(*) FROM candidates")
        return int(count)

    def next_number(self) -> int:
        """A number that no candidate ever had."""
        found = self.ask("SELECT seq FROM sqlite_sequence WHERE name = 'candidates'")
        return int(found[0][0]) + 1 if found else 0

    def insert(self, numbers: Counts, rows: Sequence[tuple[str, str, str]]) -> None:
        """Write down ids, texts and metadata."""
        numbered = ((number, *row) for number, row in zip(numbers.tolist(), rows, strict=True))
        self.tell("INSERT INTO candidates VALUES (?, ?, ?, ?)", numbered)

    def delete(self, numbers: Counts) -> None:
        """Forget candidates; those that are in a segment are removed from it."""
        each = [(number,) for number in numbers.tolist()]
        self.tell(
            "INSERT INTO removed SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM fresh WHERE number = ?1)", each
        )
        self.tell("DELETE FROM fresh WHERE number = ?", each)
        self.tell("DELETE FROM candidates WHERE number = ?", each)

    def items(self, numbers: Counts) -> dict[int, Item]:
        """Candidates by their numbers, those that are there."""
        rows = self._among(
            "SELECT number, id, text, metadata FROM candidates WHERE number IN", numbers.tolist()
        )
        return {number: Item(id_, text, json.loads(metadata)) for number, id_, text, metadata in rows}

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of candidates, by their ids, those that are there."""
        return dict(self._among("SELECT id, number FROM candidates WHERE id IN", list(ids)))

    def where(self, wanted: Mapping[str, Any]) -> Counts:
        """The numbers of the candidates whose metadata has these values; a list means any of its values."""
        conditions, values = ["1"], list[Any]()
        for name, value in wanted.items():
            several = isinstance(value, (list, tuple, set, frozenset))
            choices = [_bindable(name, choice) for choice in (value if several else [value])]
            listed = ", ".join("?" * len(choices))
            empty = "OR json_extract(metadata, ?) IS NULL" if None in choices else ""
            conditions.append(f"(json_extract(metadata, ?) IN ({listed}) {empty})")
            values += [f'$."{name}"', *choices, *([f'$."{name}"'] if empty else [])]
        rows = self.ask(f"SELECT number FROM candidates WHERE {' AND '.join(conditions)}", values)
        return np.array([number for (number,) in rows], dtype=np.int64)

    def column(self, table: str, name: str = "number") -> list[Any]:
        """All values of a column, in order."""
        return [value for (value,) in self.ask(f"SELECT {name} FROM {table} ORDER BY {name}")]

    def fresh(self, width: int) -> tuple[Counts, Floats]:
        """The numbers and vectors that are in no segment."""
        rows = self.ask("SELECT number, vector FROM fresh ORDER BY number")
        numbers = np.array([number for number, _ in rows], dtype=np.int64)
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f4").reshape(-1, width)
        return numbers, vectors

    def add_fresh(self, numbers: Counts, vectors: Floats) -> None:
        """Keep vectors until there are enough for a segment."""
        rows = zip(numbers.tolist(), (vector.astype("<f4").tobytes() for vector in vectors), strict=True)
        self.tell("INSERT INTO fresh VALUES (?, ?)", rows)

    def problems(self) -> list[str]:
        """What SQLite finds wrong with its file."""
        found = [message for (message,) in self.ask("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def _among(self, question: str, values: list[Any]) -> Iterator[Any]:
        for start in range(0, len(values), AT_ONCE):
            part = values[start : start + AT_ONCE]
            yield from self.ask(f"{question} ({', '.join('?' * len(part))})", part)


def row_of(item: Item) -> tuple[str, str, str]:
    """Id, text and metadata as the tables keep them."""
    try:
        metadata = json.dumps(dict(item.metadata), ensure_ascii=False, allow_nan=False)
        for text in (item.id, item.text, metadata):
            text.encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"candidate {item.id!r} cannot be kept as JSON: {error}") from None
    return item.id, item.text, metadata


def _bindable(name: str, value: Any) -> Any:
    """A value that SQLite can compare with; numpy's numbers become plain ones."""
    plain = value.item() if hasattr(value, "item") else value
    if plain is not None and not isinstance(plain, (str, int, float)):
        raise InputError(f"metadata is compared with texts, numbers and truth values, got {name}={value!r}")
    if isinstance(plain, int) and abs(plain) >= 2**63:
        raise InputError(f"{name}={value} is too large to compare with")
    return plain


@contextmanager
def said(file: Path) -> Iterator[None]:
    """What SQLite complains of, in a line that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "full" in str(error) or "readonly" in str(error):
            raise OutputError(f"{file.parent} cannot be written to: {error}") from None
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise OutputError(f"{file.parent} is busy: try again ({error})") from None
        if isinstance(error, sqlite3.ProgrammingError):
            raise InputError(f"{file.parent} cannot be asked ({error}): open it again") from None
        raise BrokenIndexError(f"{file} is no whole database ({error}): restore it from a copy") from None
