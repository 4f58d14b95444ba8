"""An index in PostgreSQL, with the interface that ``Retriever`` needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from tercet.errors import BrokenIndexError, DatabaseError, InputError, OutputError
from tercet.index.backends.address import Address
from tercet.index.backends.export import export_candidates
from tercet.index.backends.postgres.connections import Connections, reading_one_state
from tercet.index.backends.postgres.faults import not_an_index
from tercet.index.backends.postgres.metadata import PostgresMetadata
from tercet.index.backends.postgres.place import Place, place_of
from tercet.index.backends.postgres.schema import (
    COLUMN_TYPES,
    FORMAT,
    LEAST_PGVECTOR,
    MOST_IN_A_GRAPH,
    graph_sql,
    migration,
)
from tercet.index.backends.postgres.vectors import decoded
from tercet.index.backends.postgres.view import PostgresView
from tercet.index.backends.postgres.writing import Writes
from tercet.index.conditions import SHOWN_VALUES, Where, conditions_of
from tercet.index.items import Item
from tercet.index.metadata_checks import check_column
from tercet.index.owners import CandidateParts
from tercet.index.protocol import Encoding
from tercet.index.store import GRAPH_THRESHOLD
from tercet.inputs import check_choice, listed
from tercet.records import Floats
from tercet.settings.index import Storage

T = TypeVar("T")

OWN_SETTINGS = (
    "format",
    "width",
    "storage",
    "lexical",
    "chunked",
    "text_search",
    "next_number",
    "next_vector",
)
"""The settings that a migration writes."""
READ_AT_ONCE = 1000
ENCODED_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the tables of an index look like."""

    place: Place
    width: int
    storage: Storage
    lexical: bool
    chunked: bool
    text_search: str

    @property
    def kind(self) -> str:
        """The type of the column of vectors."""
        return COLUMN_TYPES[self.storage]


class PostgresStore:
    """The tables of an index. Any number of processes may search it; writers wait for each other."""

    def __init__(self, place: Place, settings: Settings, connections: Connections) -> None:
        self.place, self.settings = place, settings
        self.width, self.has_lexical, self.is_chunked = settings.width, settings.lexical, settings.chunked
        self._connections = connections
        self._writes = Writes(settings, connections)
        self._claimed = False
        self._marker = self._query("SELECT to_regclass(%s)::oid", [place.table("_settings")])[0][0]

    @classmethod
    def open(cls, address: Address) -> "PostgresStore":
        """The index at an address, which must exist."""
        place = place_of(address)
        connections = Connections(place)
        return cls(place, connections.run(lambda connection: _read_settings(connection, place)), connections)

    @classmethod
    def exists(cls, address: Address) -> bool:
        """Whether there is an index at an address, and not only tables that were never used."""
        place = place_of(address)
        connections = Connections(place)
        try:
            if not connections.run(lambda connection: _has_tables(connection, place)):
                return False
        finally:
            connections.discard()
        store = cls.open(address)
        try:
            return store.metadata("fingerprint") is not None
        finally:
            store.close()

    @classmethod
    def migration(
        cls, address: Address, width: int, *, storage: Storage, lexical: bool, chunked: bool
    ) -> str:
        """The SQL that creates the tables of an index."""
        return migration(place_of(address), width, storage=storage, lexical=lexical, chunked=chunked)

    @classmethod
    def create(
        cls,
        address: Address,
        width: int,
        *,
        storage: Storage = "float32",
        lexical: bool = True,
        chunked: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> "PostgresStore":
        """The empty index at an address. Its tables are created, unless a user ran the migration before."""
        check_choice("storage", storage, tuple(COLUMN_TYPES))
        place = place_of(address)
        sql = migration(place, width, storage=storage, lexical=lexical, chunked=chunked, metadata=metadata)
        connections = Connections(place)
        with_tables = connections.run(lambda connection: _has_tables(connection, place))
        if not with_tables:
            connections.run(lambda connection: _migrate(connection, sql), attempts=1)
        store = cls.open(address)
        if with_tables:
            store.claim(width, storage=storage, lexical=lexical, chunked=chunked, metadata=metadata or {})
        return store

    @property
    def name(self) -> str:
        """The address, without secrets."""
        return str(self.place.address)

    @property
    def is_finished(self) -> bool:
        """Whether no build of the index was interrupted."""
        return self.metadata("source") is None or bool(self.metadata("finished"))

    def __len__(self) -> int:
        return int(self._query(f"SELECT count(*) FROM {self.place.table()}")[0][0])

    def __iter__(self) -> Iterator[Item]:
        """All candidates, in the order in which they were stored, at the moment of the first one."""
        for items, _ in self.batches(with_vectors=False):
            yield from items

    def batches(self, *, with_vectors: bool) -> "Iterator[tuple[list[Item], Floats | None]]":
        """All candidates, some at a time, with their vectors ``[C, D]`` if the index has one for each."""
        columns, joined = "candidate.id, candidate.text, candidate.metadata", ""
        if with_vectors:
            columns += f", {self.settings.kind}_send(vector.embedding)"
            joined = f"JOIN {self.place.table('_vectors')} AS vector ON vector.candidate = candidate.number"
        query = f"SELECT {columns} FROM {self.place.table()} AS candidate {joined} ORDER BY candidate.number"
        with self._connections.transaction() as connection, connection.cursor("tercet") as cursor:
            cursor.execute(query.encode())
            while rows := cursor.fetchmany(READ_AT_ONCE):
                vectors = [row[3] for row in rows] if with_vectors else []
                yield (
                    [Item(*row[:3]) for row in rows],
                    decoded(self.settings.kind, vectors, self.width) if with_vectors else None,
                )

    def contains(self, id_: str) -> bool:
        """Whether there is a candidate with an id."""
        return bool(self._query(f"SELECT 1 FROM {self.place.table()} WHERE id = %s", [_storable(id_)]))

    def get(self, ids: Sequence[str]) -> list[Item]:
        """The candidates with these ids, which must exist."""
        rows = self._query(
            f"SELECT id, text, metadata FROM {self.place.table()} WHERE id = ANY(%s)",
            [[_storable(id_) for id_ in ids]],
        )
        known = {row[0]: Item(*row) for row in rows}
        unknown = [id_ for id_ in ids if id_ not in known]
        if unknown:
            raise InputError(f"the index has no candidate {listed(unknown, most=SHOWN_VALUES)}")
        return [known[id_] for id_ in ids]

    def read(self, call: Callable[[PostgresView], T]) -> T:
        """What ``call`` returns, in one transaction. It is called again if the connection is lost."""

        def reading(connection: psycopg.Connection[Any]) -> T:
            with reading_one_state(connection):
                return call(PostgresView(connection, self.settings))

        return self._connections.run(reading)

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""
        return self._metadata_table().columns()

    def check_column(self, column: str) -> None:
        """Raise if no candidate has a column in its metadata."""
        check_column(self._metadata_table(), column)

    def count_where(self, where: Where) -> int:
        """The number of candidates that meet all conditions; errors as those of a search."""
        conditions = conditions_of(where)
        self.read(lambda view: view.select(conditions))
        return self._metadata_table().count(conditions)

    def lexical_terms(self, text: str) -> list[str]:
        """The lexemes of a text; none without a lexical index."""
        if not self.has_lexical:
            return []
        query = "SELECT lexeme FROM unnest(to_tsvector(%s::regconfig, %s)) ORDER BY positions[1]"
        return [lexeme for (lexeme,) in self._query(query, [self.settings.text_search, text])]

    def metadata(self, name: str) -> Any:
        """A value of the store's metadata; None if it is not set."""
        rows = self._query(f"SELECT value FROM {self.place.table('_settings')} WHERE name = %s", [name])
        return rows[0][0] if rows else None

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""
        self._writes.run(lambda write: write.set_settings(metadata))

    def summary(self) -> dict[str, Any]:
        """The size, settings and model of the index."""
        tables = [self.place.table(suffix) for suffix in ("", "_vectors", "_settings")]
        sizes = " + ".join("pg_total_relation_size(%s)" for _ in tables)
        (row,) = self._query(
            f"SELECT (SELECT count(*) FROM {tables[1]}), to_regclass(%s) IS NOT NULL, {sizes}",
            [self.place.table("_vectors_hnsw"), *tables],
        )
        return {
            "candidates": len(self),
            "finished": "yes" if self.is_finished else "no: run the same build command again",
            "chunks": row[0] if self.is_chunked else "no",
            "graphs": int(row[1]),
            "lexical": self.settings.text_search if self.has_lexical else "no",
            "width": self.width,
            "storage": self.settings.storage,
            "model": self.metadata("model") or "unknown",
            "kind": self.metadata("kind") or "unknown",
            "fingerprint": self.metadata("fingerprint") or "unknown",
            "bytes": int(row[2]),
        }

    def add(
        self,
        items: Sequence[Item],
        vectors: Floats,
        *,
        parts: CandidateParts | None = None,
        store_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add candidates with new ids, all or none of them, and set values of the store's metadata."""
        self._writes.put(items, vectors, parts, store_metadata or {}, replacing=False)

    def update(self, items: Sequence[Item], vectors: Floats, *, parts: CandidateParts | None = None) -> None:
        """Replace candidates that have these ids, and add the others."""
        if not all(item.id for item in items):
            raise InputError("an update needs the id of every candidate: add those that have none")
        self._writes.put(items, vectors, parts, {}, replacing=True)

    def update_metadata(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """Change values in the metadata of candidates, by id; None removes one."""
        self._writes.run(lambda write: write.update_metadata(metadata))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove candidates, which must exist."""
        self._writes.run(lambda write: write.remove(ids))

    def compact(self, *, graph_threshold: int = GRAPH_THRESHOLD) -> None:
        """With at least so many vectors, build the HNSW graph, which makes search faster and approximate."""
        vectors = self.place.table("_vectors")
        ((count,),) = self._query(f"SELECT count(*) FROM {vectors}")
        if count >= graph_threshold and self.width <= MOST_IN_A_GRAPH[self.settings.storage]:
            self._connections.run(self._build_graph, attempts=1)
        for table in (vectors, self.place.table()):
            self._execute(f"ANALYZE {table}")

    def save(self, path: Path) -> "PostgresStore":
        """Not possible: the database is where the index is saved."""
        raise InputError(f"{self.name} is saved in its database: export its candidates to a file instead")

    def export(self, path: Path, *, vectors: Path | None = None, overwrite: bool = False) -> int:
        """Write id, text and metadata of each candidate to a JSONL file; returns how many were written."""
        if vectors is not None and self.is_chunked:
            raise InputError(
                f"{self.name} has a vector for each chunk: export its candidates without vectors"
            )
        batches = self.batches(with_vectors=vectors is not None)
        return export_candidates(self.name, batches, path, vectors=vectors, overwrite=overwrite)

    def problems(self) -> list[str]:
        """Candidates without vectors, and a graph that was not finished."""
        missing = len(self._without_vectors())
        found = [f"{missing:,} candidates have no vector"] if missing else []
        graph = self._query(
            "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid",
            [self.place.table("_vectors_hnsw")],
        )
        return [*found, *(["the HNSW graph is not finished"] if graph else [])]

    def repair(self, encoding: Encoding, *, accept_loss: bool = False) -> int:
        """Encode the candidates that have no vector; returns how many."""
        ids = self._without_vectors()
        for start in range(0, len(ids), ENCODED_AT_ONCE):
            encoding.update(self.get(ids[start : start + ENCODED_AT_ONCE]))
        self._connections.run(self._drop_unfinished_graph)
        return len(ids)

    def marker(self) -> object:
        """The numbers of the tables; None if they are gone. A fault of the server is no reason to say so."""
        try:
            rows = self._query("SELECT to_regclass(%s)::oid", [self.place.table("_settings")])
        except DatabaseError:
            return self._marker
        return rows[0][0]

    def delete(self) -> None:
        """Drop the tables of the index, or only empty them if a user created them."""
        if self._claimed:
            kept = list(OWN_SETTINGS)
            self._execute(f"DELETE FROM {self.place.table()}")
            self._query(
                f"DELETE FROM {self.place.table('_settings')} WHERE name <> ALL(%s) RETURNING name", [kept]
            )
            return self.close()
        tables = ", ".join(self.place.table(suffix) for suffix in ("_settings", "_vectors", ""))
        self._execute(f"DROP TABLE {tables}")
        return self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.discard()

    def claim(self, width: int, **wanted: Any) -> None:
        """Use tables that a user created by the migration, if they are empty and fit."""
        metadata = dict(wanted.pop("metadata"))
        found = {name: getattr(self.settings, name) for name in ("width", "storage", "lexical", "chunked")}
        different = [name for name, value in {"width": width, **wanted}.items() if found[name] != value]
        if self.metadata("fingerprint") is not None or len(self):
            raise OutputError(
                f'{self.name} is an index: open it with tercet.Retriever.open("{self.name}"), or choose '
                "another name"
            )
        if different:
            raise InputError(
                f"the tables of {self.name} were created with another {listed(different)}: give the same "
                "settings to tercet index migration and to tercet index build"
            )
        self.set_metadata(metadata)
        self._claimed = True

    def _metadata_table(self) -> PostgresMetadata:
        return PostgresMetadata(self._query, self.place)

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query that only reads."""
        return self._connections.run(lambda connection: connection.execute(sql.encode(), values).fetchall())

    def _execute(self, sql: str) -> None:
        self._connections.run(lambda connection: connection.execute(sql.encode()), attempts=1)

    def _without_vectors(self) -> list[str]:
        """The ids of the candidates that have no vector."""
        vectors = (
            f"SELECT FROM {self.place.table('_vectors')} AS vector WHERE vector.candidate = candidate.number"
        )
        rows = self._query(
            f"SELECT id FROM {self.place.table()} AS candidate WHERE NOT EXISTS ({vectors}) ORDER BY number"
        )
        return [id_ for (id_,) in rows]

    def _build_graph(self, connection: psycopg.Connection[Any]) -> None:
        self._drop_unfinished_graph(connection)
        found = connection.execute("SELECT to_regclass(%s)", [self.place.table("_vectors_hnsw")]).fetchall()
        if found[0][0] is not None:
            return
        with connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")  # a graph takes minutes
            if self.place.options.build_memory:
                connection.execute(
                    "SELECT set_config('maintenance_work_mem', %s, true)", [self.place.options.build_memory]
                )
            connection.execute(graph_sql(self.place, self.settings.storage).encode())

    def _drop_unfinished_graph(self, connection: psycopg.Connection[Any]) -> None:
        """Drop a graph that CREATE INDEX CONCURRENTLY left invalid."""
        graph = self.place.table("_vectors_hnsw")
        query = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
        if connection.execute(query, [graph]).fetchall():
            connection.execute(f"DROP INDEX {graph}".encode())


def _storable(id_: str) -> str:
    """The id; one with the character NUL, which cannot be stored, becomes one that nothing has."""
    return id_.replace("\0", "\ufffd")


def _has_tables(connection: psycopg.Connection[Any], place: Place) -> bool:
    """Whether the tables of an index exist; other tables of these names are refused."""
    names = [place.table(suffix) for suffix in ("", "_vectors", "_settings")]
    known = ", ".join("to_regclass(%s) IS NOT NULL" for _ in names)
    (found,) = connection.execute(f"SELECT {known}".encode(), names).fetchall()
    if any(found) and not all(found):
        taken = ", ".join(name for name, exists in zip(names, found, strict=True) if exists)
        raise OutputError(
            f"{place.address}: the table {taken} exists and is not an index: choose another name"
        )
    return all(found)


def _migrate(connection: psycopg.Connection[Any], sql: str) -> None:
    with connection.transaction():
        connection.execute(sql.encode())


def _read_settings(connection: psycopg.Connection[Any], place: Place) -> Settings:
    """The settings of an index, if this version reads it."""
    if not _has_tables(connection, place):
        raise not_an_index(place)
    rows = connection.execute(f"SELECT name, value FROM {place.table('_settings')}".encode()).fetchall()
    values = dict(rows)
    if values.get("format") != FORMAT:
        raise InputError(
            f"{place.address} has format {values.get('format')}, but this version of tercet reads format "
            f"{FORMAT}: build it again under another name"
        )
    _check_extension(connection, place)
    wanted = {"width": int, "storage": str, "lexical": bool, "chunked": bool, "text_search": str}
    lost = [name for name, kind in wanted.items() if not isinstance(values.get(name), kind)]
    if lost:
        raise BrokenIndexError(f"{place.address} has lost its setting {lost[0]!r}: restore it from a backup")
    return Settings(place=place, **{name: values[name] for name in wanted})


def _check_extension(connection: psycopg.Connection[Any], place: Place) -> None:
    rows = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchall()
    least = ".".join(map(str, LEAST_PGVECTOR))
    if not rows:
        raise DatabaseError(f"{place.address}: the extension vector is missing: CREATE EXTENSION vector")
    if tuple(int(part) for part in rows[0][0].split(".")[:2]) < LEAST_PGVECTOR:
        raise DatabaseError(
            f"{place.address}: tercet needs pgvector {least}, got {rows[0][0]}: ALTER EXTENSION vector UPDATE"
        )
