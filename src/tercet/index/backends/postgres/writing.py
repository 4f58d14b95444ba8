"""Changes of an index in PostgreSQL: each is a transaction that happens once, even if its answer is lost."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from tercet.errors import DatabaseError, InputError
from tercet.files.structured import json_text
from tercet.index.backends.postgres.connections import Connections
from tercet.index.backends.postgres.vectors import encoded, fitted
from tercet.index.base import check_vectors
from tercet.index.conditions import SHOWN_VALUES
from tercet.index.items import Item, assign_ids, row_of
from tercet.index.owners import CandidateParts
from tercet.index.reading import merged
from tercet.inputs import listed
from tercet.records import Floats

if TYPE_CHECKING:
    from tercet.index.backends.postgres.store import Settings

T = TypeVar("T")

NOTED = 100
"""How many of the last changes the table of settings names."""


class Writes:
    """Runs changes one at a time. The next writer waits for the lock of the settings."""

    def __init__(self, settings: "Settings", connections: Connections) -> None:
        self._settings, self._connections = settings, connections

    def run(self, change: "Callable[[Write], T]") -> T | None:
        """What ``change`` returns, or None if it was known to have happened after a lost connection.

        A change is repeated if the connection is lost. Its token, which is stored in the same transaction,
        says whether it happened before.
        """
        token, tried = token_hex(8), False

        def once(connection: psycopg.Connection[Any]) -> T | None:
            nonlocal tried
            with connection.transaction():
                write = Write(connection, self._settings)
                if tried and token in write.noted:
                    return None
                if tried and len(write.noted) == NOTED and write.changes - self._seen >= NOTED:
                    raise DatabaseError(
                        f"{self._settings.place.address}: the connection was lost during a change, and it is "
                        "not known whether it happened: look for its candidates before you repeat it"
                    )
                self._seen, tried = write.changes, True
                result = change(write)
                write.note(token)
                return result

        return self._connections.run(once)

    def put(
        self,
        items: Sequence[Item],
        vectors: Floats,
        parts: CandidateParts | None,
        settings: Mapping[str, Any],
        *,
        replacing: bool,
    ) -> None:
        """Add candidates, or replace those whose ids are known."""
        checked = self._checked(items, vectors, parts)
        self.run(lambda write: write.put(items, checked, parts, settings, replacing=replacing))

    def _checked(self, items: Sequence[Item], vectors: Floats, parts: CandidateParts | None) -> Floats:
        if self._settings.chunked and (parts is None or len(parts) != len(items) or not all(parts)):
            raise InputError("this index has a vector for each chunk: add every candidate with its parts")
        if not self._settings.chunked and parts is not None:
            raise InputError("this index has one vector for each candidate: add candidates without parts")
        count = len(items) if parts is None else sum(map(len, parts))
        checked = check_vectors(vectors, count=count, width=self._settings.width)
        return fitted(self._settings.kind, checked)

    _seen = 0
    """How many changes there were when a change was tried."""


class Write:
    """One transaction that changes the tables, while other writers wait."""

    def __init__(self, connection: psycopg.Connection[Any], settings: "Settings") -> None:
        self._connection, self._settings = connection, settings
        self._place = settings.place
        table = self._place.table("_settings")
        # one row is the lock of all writers, and is never changed: several rows would end in deadlocks
        self._query(f"SELECT 1 FROM {table} WHERE name = 'format' FOR UPDATE", [])
        names = ["next_number", "next_vector", "changes", "noted"]
        rows = self._query(f"SELECT name, value FROM {table} WHERE name = ANY(%s)", [names])
        values = dict(rows)
        self._next, self._next_vector = int(values["next_number"]), int(values["next_vector"])
        self.changes, self.noted = int(values.get("changes", 0)), list(values.get("noted", []))

    def set_settings(self, settings: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""
        with self._connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self._place.table('_settings')} (name, value) VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value".encode(),
                [(name, Jsonb(value, dumps=json_text)) for name, value in settings.items()],
            )

    def note(self, token: str) -> None:
        """Record that a change happened."""
        noted = [*self.noted, token][-NOTED:]
        numbers = {"next_number": self._next, "next_vector": self._next_vector}
        self.set_settings({**numbers, "changes": self.changes + 1, "noted": noted})

    def put(
        self,
        items: Sequence[Item],
        vectors: Floats,
        parts: CandidateParts | None,
        settings: Mapping[str, Any],
        *,
        replacing: bool,
    ) -> None:
        """Add candidates, or replace those whose ids are known, and set values of the store's metadata."""
        if replacing:
            items = self._with_stored_metadata(items)
        rows = [storable(row_of(item)) for item in assign_ids(items, self._next, self._numbers)]
        replaced = self._existing([id_ for id_, _, _ in rows], allowed=replacing)
        self._delete(replaced)
        self._copy_candidates(rows)
        self._copy_vectors(vectors, parts, first=self._next)
        self._next, self._next_vector = self._next + len(rows), self._next_vector + len(vectors)
        self.set_settings(settings)

    def update_metadata(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """Change values in the metadata of candidates, by id; None removes one."""
        stored = self._stored(list(metadata))
        unknown = [id_ for id_ in metadata if id_ not in stored]
        if unknown:
            raise InputError(f"the index has no candidate {listed(unknown, most=SHOWN_VALUES)}")
        rows = [
            storable(row_of(Item(id_, "", merged(stored[id_], values)))) for id_, values in metadata.items()
        ]
        with self._connection.cursor() as cursor:
            cursor.executemany(
                f"UPDATE {self._place.table()} SET metadata = %s::jsonb WHERE id = %s".encode(),
                [(values, id_) for id_, _, values in rows],
            )

    def remove(self, ids: Sequence[str]) -> None:
        """Remove candidates, which must exist."""
        known = self._numbers(ids)
        unknown = [id_ for id_ in ids if id_ not in known]
        if unknown:
            missing = listed(unknown, most=SHOWN_VALUES)
            raise InputError(f"{self._place.address} has no candidate {missing}: nothing was removed")
        self._delete(list(known.values()))

    def _existing(self, ids: Sequence[str], *, allowed: bool) -> list[int]:
        """The numbers of the candidates that have these ids already."""
        if len(set(ids)) < len(ids):
            raise InputError(f"ids must be distinct, but {Counter(ids).most_common(1)[0][0]!r} is repeated")
        known = self._numbers(ids)
        if known and not allowed:
            verb = "exists" if len(known) == 1 else "exist"
            raise InputError(
                f"{listed(list(known), most=SHOWN_VALUES)} {verb} already: update (--update), remove, or "
                "choose other ids"
            )
        return list(known.values())

    def _numbers(self, ids: Sequence[str]) -> dict[str, int]:
        known = [id_ for id_ in ids if "\0" not in id_]
        return dict(self._query(f"SELECT id, number FROM {self._place.table()} WHERE id = ANY(%s)", [known]))

    def _stored(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Metadata by id; unknown ids are left out."""
        known = [id_ for id_ in ids if "\0" not in id_]
        return dict(
            self._query(f"SELECT id, metadata FROM {self._place.table()} WHERE id = ANY(%s)", [known])
        )

    def _with_stored_metadata(self, items: Sequence[Item]) -> list[Item]:
        """The items with the metadata that is stored under their ids, changed by their own."""
        stored = self._stored([item.id for item in items])
        return [
            Item(item.id, item.text, merged(stored[item.id], item.metadata)) if item.id in stored else item
            for item in items
        ]

    def _delete(self, numbers: Sequence[int]) -> None:
        """Delete candidates; their vectors go with them."""
        if numbers:
            self._connection.execute(
                f"DELETE FROM {self._place.table()} WHERE number = ANY(%s)".encode(), [numbers]
            )

    def _copy_candidates(self, rows: Sequence[tuple[str, str, str]]) -> None:
        table = f"COPY {self._place.table()} (number, id, text, metadata) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(table.encode()) as copy:
            for number, row in enumerate(rows, start=self._next):
                copy.write_row((number, *row))

    def _copy_vectors(self, vectors: Floats, parts: CandidateParts | None, *, first: int) -> None:
        """Copy vectors in the binary form of their type, which COPY does not check by name."""
        table = (
            f"COPY {self._place.table('_vectors')} (number, candidate, start, stop, embedding) "
            "FROM STDIN (FORMAT BINARY)"
        )
        owners: list[tuple[int, int | None, int | None]] = (
            [(first + at, None, None) for at in range(len(vectors))]
            if parts is None
            else [(first + at, part.start, part.end) for at, of in enumerate(parts) for part in of]
        )
        with self._connection.cursor() as cursor, cursor.copy(table.encode()) as copy:
            copy.set_types(["int8", "int8", "int4", "int4", "bytea"])
            values = encoded(self._settings.kind, np.asarray(vectors))
            for number, (owner, value) in enumerate(
                zip(owners, values, strict=True), start=self._next_vector
            ):
                copy.write_row((number, *owner, value))

    def _query(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql.encode(), values).fetchall()
        return rows


def storable(row: tuple[str, str, str]) -> tuple[str, str, str]:
    """A row, if PostgreSQL can store it: no text of it may contain the character NUL."""
    if "\0" in row[0] or "\0" in row[1] or "\\u0000" in row[2].replace("\\\\", ""):
        raise InputError(f"PostgreSQL cannot store the character NUL, which candidate {row[0]!r} contains")
    return row
