"""Indexes in Qdrant: a collection of vectors, and a second one with a single point that has the settings."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from tercet.errors import DatabaseError, InputError
from tercet.index.backends.address import Address
from tercet.index.backends.engine import Point, Scope
from tercet.index.backends.journal import JournalStore
from tercet.index.backends.products import Rows
from tercet.index.backends.tokens import AnyToken, NumberOrder, numbers_of, tokens_of
from tercet.inputs import check_choice
from tercet.records import Floats, Ints
from tercet.settings.databases import DatabaseOptions, QdrantOptions
from tercet.settings.index import Storage

AT_ONCE = 256
"""Points of a request that writes, or that reads texts."""
SETTINGS = "_settings"
"""What is added to the name of the index for the collection of its settings."""
ORDERS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


class QdrantStore:
    """Opens and creates indexes in Qdrant."""

    @classmethod
    def open(cls, address: Address) -> JournalStore:
        """The index at an address, which must exist."""
        engine, options = _engine(address)
        return JournalStore(address, engine, ef_search=options.ef_search)

    @classmethod
    def exists(cls, address: Address) -> bool:
        """Whether there is an index at an address."""
        engine, _ = _engine(address)
        try:
            return engine.settings() is not None
        finally:
            engine.close()

    @classmethod
    def migration(
        cls, address: Address, width: int, *, storage: Storage, lexical: bool, chunked: bool
    ) -> str:
        """Qdrant has no SQL to show."""
        raise InputError("a migration is for PostgreSQL: Qdrant's collections are created by the build")

    @classmethod
    def create(
        cls,
        address: Address,
        width: int,
        *,
        storage: Storage = "float32",
        lexical: bool = False,
        chunked: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> JournalStore:
        """An empty index at an address where there is none yet."""
        check_choice("storage", storage, ("float32", "float16"))
        if lexical:
            raise InputError(
                "an index in Qdrant has no lexical search: build it with --no-lexical (lexical=False)"
            )
        engine, options = _engine(address)
        JournalStore.start(address, engine, width, storage=storage, chunked=chunked, metadata=metadata)
        return JournalStore(address, engine, ef_search=options.ef_search)


class QdrantEngine:
    """The two collections of an index."""

    def __init__(self, address: Address, client: QdrantClient, name: str) -> None:
        self._address, self._client, self._name = address, client, name
        self._lock = RLock()
        """The local engine is for one thread at a time."""

    def settings(self) -> dict[str, Any] | None:
        """The settings; None if there is no collection."""
        with self._calling():
            if not self._client.collection_exists(self._name + SETTINGS):
                return None
            found = self._client.retrieve(self._name + SETTINGS, [0], consistency="all")
            return dict(found[0].payload or {}) if found else None

    def create(self, width: int, *, half: bool) -> None:
        """Create the collections and the payload indexes that filters need."""
        datatype = models.Datatype.FLOAT16 if half else models.Datatype.FLOAT32
        with self._calling():
            if self._client.collection_exists(self._name):
                raise InputError(f"{self._address} is a collection that is not an index: choose another name")
            self._client.create_collection(
                self._name,
                models.VectorParams(size=width, distance=models.Distance.DOT, datatype=datatype),
            )
            for field, kind in (
                ("number", "integer"),
                ("candidate", "integer"),
                ("id", "keyword"),
                ("tokens", "keyword"),
                ("first", "bool"),
            ):
                self._client.create_payload_index(self._name, field, field_schema=kind, wait=True)
            self._client.create_collection(
                self._name + SETTINGS, models.VectorParams(size=1, distance=models.Distance.DOT)
            )

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Replace the settings, all at once."""
        with self._calling():
            self._client.upsert(
                self._name + SETTINGS,
                [models.PointStruct(id=0, vector=[1.0], payload=settings)],
                wait=True,
            )

    def upsert(self, points: Sequence[Point], vectors: Floats) -> None:
        """Write points; those with the same numbers are replaced."""
        for start in range(0, len(points), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            structs = [
                models.PointStruct(id=point.number, vector=vector.tolist(), payload=_payload(point))
                for point, vector in zip(points[part], vectors[part], strict=True)
            ]
            with self._calling():
                self._client.upsert(self._name, structs, wait=True)

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete points; unknown numbers are left out."""
        with self._calling():
            self._client.delete(self._name, models.PointIdsList(points=list(numbers)), wait=True)

    def delete_from(self, number: int) -> None:
        """Delete all points from a number on."""
        later = models.FieldCondition(key="number", range=models.Range(gte=number))
        with self._calling():
            self._client.delete(
                self._name, models.FilterSelector(filter=models.Filter(must=[later])), wait=True
            )

    def replace_metadata(self, point: Point) -> None:
        """Replace the metadata of the candidate of a point, in all of its points."""
        of_candidate = models.FieldCondition(key="candidate", match=models.MatchValue(value=point.candidate))
        with self._calling():
            self._client.set_payload(
                self._name, _described(point), points=models.Filter(must=[of_candidate]), wait=True
            )

    def nearest(self, queries: Floats, k: int, scope: Scope, *, exact: bool, effort: int) -> Rows:
        """The ``k`` nearest points of each of ``[Q, D]``, all in one request."""
        chosen, params = _filter(scope), self._params(exact=exact, effort=effort)
        requests = [
            models.QueryRequest(query=query.tolist(), filter=chosen, params=params, limit=k)
            for query in queries
        ]
        with self._calling():
            answers = self._client.query_batch_points(self._name, requests)
        rows = [
            (position, point.id, -point.score)
            for position, answer in enumerate(answers, start=1)
            for point in answer.points
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    def vectors(self, numbers: Ints) -> "tuple[list[Point], Floats]":
        """Points by number, without texts, and their vectors; unknown ones are left out."""
        fields = ["number", "candidate", "id", "start", "stop", "first"]
        with self._calling():
            found = self._client.retrieve(
                self._name, numbers.tolist(), with_payload=fields, with_vectors=True
            )
        points = [_point(record.payload or {}) for record in found]
        return points, np.array([record.vector for record in found], dtype=np.float32)

    def points(self, scope: Scope, *, limit: int | None = None) -> Iterator[Point]:
        """Points, with texts and metadata, in the order of their numbers."""
        offset, left = None, limit
        while True:
            with self._calling():
                found, offset = self._client.scroll(
                    self._name, _filter(scope), limit=min(AT_ONCE, left or AT_ONCE), offset=offset
                )
            yield from (_point(record.payload or {}) for record in found)
            left = None if left is None else left - len(found)
            if offset is None or left == 0:
                return

    def count(self, scope: Scope) -> int:
        """The exact number of points."""
        with self._calling():
            return int(self._client.count(self._name, _filter(scope), exact=True).count)

    def drop(self) -> None:
        """Delete the collections."""
        with self._calling():
            for name in (self._name + SETTINGS, self._name):
                self._client.delete_collection(name)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _params(self, *, exact: bool, effort: int) -> models.SearchParams | None:
        """How to search; the local engine always compares with every vector, and warns of parameters."""
        is_local = self._address.parts.hostname is None
        return None if is_local else models.SearchParams(exact=exact, hnsw_ef=effort)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Raise errors of the client as errors of tercet."""
        with self._lock:
            try:
                yield
            except (ApiException, ResponseHandlingException, UnexpectedResponse) as error:
                said = self._address.without_secrets(" ".join(str(error).split()))
                raise DatabaseError(
                    f"{self._address}: {said}: check the address, the API key and whether Qdrant runs"
                ) from None


def _engine(address: Address) -> tuple[QdrantEngine, DatabaseOptions]:
    """The engine of ``qdrant://host:6333/name``, or of ``qdrant:///folder/name`` without a server."""
    options, others = QdrantOptions.taken_from(address.options)
    if others:
        raise InputError(f"{address} has an unknown option: {', '.join(others)}")
    *folder, name = address.path
    if not name:
        raise InputError(f"the address of an index is qdrant://HOST:PORT/INDEX, got {address}")
    host = address.parts.hostname
    try:
        if host is None:
            client = QdrantClient(path="/" + "/".join(folder), force_disable_check_same_thread=True)
        else:
            client = QdrantClient(
                host=host,
                port=address.parts.port or 6333,
                https=options.https == "true",
                api_key=options.api_key or os.environ.get("QDRANT_API_KEY"),
                timeout=options.timeout_seconds,
                check_compatibility=False,
            )
    except RuntimeError as error:  # another process uses the folder
        raise DatabaseError(f"{address}: {address.without_secrets(str(error))}") from None
    return QdrantEngine(address, client, name), options


def _payload(point: Point) -> dict[str, Any]:
    fields = {
        "number": point.number,
        "candidate": point.candidate,
        "id": point.id,
        "start": point.start,
        "stop": point.stop,
        "first": point.is_first,
        "text": point.text if point.is_first else "",
    }
    return {**fields, **_described(point)}


def _described(point: Point) -> dict[str, Any]:
    """The metadata, and what filters find it by; all points of a candidate have it."""
    numbers = [{"column": column, "value": value} for column, value in numbers_of(point.metadata).items()]
    return {"metadata": point.metadata, "tokens": tokens_of(point.metadata), "numbers": numbers}


def _point(payload: Mapping[str, Any]) -> Point:
    return Point(
        payload["number"],
        payload["candidate"],
        payload["id"],
        payload.get("start"),
        payload.get("stop"),
        payload["first"],
        payload.get("text", ""),
        payload.get("metadata") or {},
    )


def _filter(scope: Scope) -> models.Filter:
    """The filter of Qdrant for the points that count."""
    must: list[Any] = [models.FieldCondition(key="number", range=models.Range(lt=scope.below))]
    must_not: list[Any] = [models.HasIdCondition(has_id=sorted(scope.removed))] if scope.removed else []
    if scope.only_first:
        must.append(models.FieldCondition(key="first", match=models.MatchValue(value=True)))
    if scope.ids is not None:
        must.append(models.FieldCondition(key="id", match=models.MatchAny(any=list(scope.ids))))
    if scope.candidates is not None:
        must.append(models.FieldCondition(key="candidate", match=models.MatchAny(any=list(scope.candidates))))
    for clause in scope.filter:
        if isinstance(clause, NumberOrder):
            must.append(_order(clause))
        else:
            (must_not if clause.negated else must).append(_any(clause))
    return models.Filter(must=must, must_not=must_not)


def _order(clause: NumberOrder) -> Any:
    inside = models.Filter(
        must=[
            models.FieldCondition(key="column", match=models.MatchValue(value=clause.column)),
            models.FieldCondition(key="value", range=models.Range(**{ORDERS[clause.operator]: clause.value})),
        ]
    )
    return models.NestedCondition(nested=models.Nested(key="numbers", filter=inside))


def _any(clause: AnyToken) -> Any:
    chosen = models.FieldCondition(key="tokens", match=models.MatchAny(any=list(clause.tokens)))
    if clause.or_missing is None:
        return chosen
    filled = models.FieldCondition(key="tokens", match=models.MatchValue(value=clause.or_missing))
    return models.Filter(should=[chosen, models.Filter(must_not=[filled])])
