"""A store in a database without transactions: its settings make each change all or nothing.

A change first writes new points, whose numbers nobody reads yet. Then it replaces the settings in one
request, which moves the first unread number and names the points that are removed: that is the moment of the
change. At last it deletes the removed points. The next writer deletes what a killed one left. A search reads
the settings before and after; if they differ, it starts again, so it always sees one state.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import sqrt
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from tercet.errors import DatabaseError, InputError, OutputError
from tercet.index.backends.address import Address
from tercet.index.backends.engine import Engine, Point, Scope
from tercet.index.backends.export import export_candidates
from tercet.index.backends.products import DatabaseVectors, Rows, half_precision
from tercet.index.backends.tokens import Filter, filter_of, has_column, incomparable, numbers_of
from tercet.index.base import check_query, check_vectors
from tercet.index.certified import certified_search
from tercet.index.conditions import SHOWN_VALUES, Condition, Where, conditions_of
from tercet.index.items import Item, assign_ids, row_of
from tercet.index.metadata_checks import Incomparable, check_column, check_conditions, check_values
from tercet.index.owners import CandidateParts, Owner
from tercet.index.protocol import Encoding
from tercet.index.ranking import Ranking, rank_candidates
from tercet.index.reading import merged
from tercet.index.store import GRAPH_THRESHOLD
from tercet.inputs import listed
from tercet.records import Codes, Floats, Ints, Part
from tercet.settings.index import Storage

T = TypeVar("T")

FORMAT = 1
ATTEMPTS = 20
"""How often a search starts again because the index changed meanwhile."""
BUDGET = 20_000
EFFORT, LEAST_EFFORT = 256, 32
READ_AT_ONCE = 1000
LARGEST_HALF = 65504.0


class ChangedError(Exception):
    """The index changed during a search."""


@dataclass(frozen=True, slots=True)
class State:
    """The settings of an index at one moment."""

    values: Mapping[str, Any]

    @property
    def scope(self) -> Scope:
        """The points that count."""
        return Scope(below=self.values["next_vector"], removed=frozenset(self.values["removed"]))


class JournalStore:
    """Candidates in an engine. One process may write at a time; any number may search."""

    has_lexical = False

    def __init__(self, address: Address, engine: Engine, *, ef_search: int | None = None) -> None:
        self._address, self._engine, self._ef_search = address, engine, ef_search
        self._writing = RLock()
        values = self._state().values
        self.width, self.storage = int(values["width"]), str(values["storage"])
        self.is_chunked = bool(values["chunked"])

    @classmethod
    def start(
        cls,
        address: Address,
        engine: Engine,
        width: int,
        *,
        storage: Storage,
        chunked: bool,
        metadata: Mapping[str, Any] | None,
    ) -> None:
        """Create an empty index."""
        if engine.settings() is not None:
            raise OutputError(
                f'{address} is an index: open it with tercet.Retriever.open("{address}"), or choose another '
                "name"
            )
        engine.create(width, half=storage == "float16")
        numbers = {"next_number": 0, "next_vector": 0, "removed": [], "changes": 0, "max_norm": 0.0}
        own = {"format": FORMAT, "width": width, "storage": storage, "chunked": chunked, "candidates": 0}
        engine.write_settings(
            {**own, **numbers, "vectors": 0, "graph": False, "metadata": dict(metadata or {})}
        )

    @property
    def name(self) -> str:
        """The address, without secrets."""
        return str(self._address)

    @property
    def is_finished(self) -> bool:
        """Whether no build of the index was interrupted."""
        return self.metadata("source") is None or bool(self.metadata("finished"))

    def __len__(self) -> int:
        return int(self._state().values["candidates"])

    def __iter__(self) -> Iterator[Item]:
        """All candidates, in the order in which they were stored."""
        scope = replace(self._state().scope, only_first=True)
        return (_item(point) for point in self._engine.points(scope))

    def contains(self, id_: str) -> bool:
        """Whether there is a candidate with an id."""
        return bool(self._first_points([id_]))

    def get(self, ids: Sequence[str]) -> list[Item]:
        """The candidates with these ids, which must exist."""
        known = self._first_points(ids)
        _check_known(ids, known, "the index")
        return [_item(known[id_]) for id_ in ids]

    def read(self, call: "Callable[[JournalView], T]") -> T:
        """What ``call`` returns of one state; it is called again if the index changes meanwhile."""
        for _ in range(ATTEMPTS):
            state = self._state()
            try:
                result = call(JournalView(self._engine, state, ef_search=self._ef_search))
            except ChangedError:
                continue
            if self._state().values["changes"] == state.values["changes"]:
                return result
        raise DatabaseError(f"{self.name} changed {ATTEMPTS} times during a search: search again later")

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""
        return self.read(lambda view: view.columns())

    def check_column(self, column: str) -> None:
        """Raise if no candidate has a column in its metadata."""
        self.read(lambda view: check_column(view, column))

    def count_where(self, where: Where) -> int:
        """The number of candidates that meet all conditions; errors as those of a search."""
        return self.read(lambda view: view.count(view.select(where)))

    def lexical_terms(self, text: str) -> list[str]:
        """None: the database has no lexical index."""
        return []

    def metadata(self, name: str) -> Any:
        """A value of the store's metadata; None if it is not set."""
        return self._state().values["metadata"].get(name)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""
        with self._change() as values:
            self._commit({**values, "metadata": {**values["metadata"], **metadata}})

    def summary(self) -> dict[str, Any]:
        """The size, settings and model of the index."""
        values = self._state().values
        metadata = values["metadata"]
        return {
            "candidates": values["candidates"],
            "finished": "yes" if self.is_finished else "no: run the same build command again",
            "chunks": values["vectors"] if self.is_chunked else "no",
            "graphs": int(values["graph"]),
            "lexical": "no",
            "width": self.width,
            "storage": self.storage,
            **{name: metadata.get(name) or "unknown" for name in ("model", "kind", "fingerprint")},
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
        self._put(items, vectors, parts, store_metadata or {}, replacing=False)

    def update(self, items: Sequence[Item], vectors: Floats, *, parts: CandidateParts | None = None) -> None:
        """Replace candidates that have these ids, and add the others."""
        if not all(item.id for item in items):
            raise InputError("an update needs the id of every candidate: add those that have none")
        self._put(items, vectors, parts, {}, replacing=True)

    def update_metadata(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """Change values in the metadata of candidates, by id; None removes one, each candidate alone."""
        with self._change() as values:
            known = self._first_points(list(metadata))
            _check_known(list(metadata), known, "the index")
            changed = [
                replace(known[id_], metadata=merged(known[id_].metadata, each))
                for id_, each in metadata.items()
            ]
            for point in changed:
                row_of(_item(point))
            self._commit(dict(values))  # searches that began before start again
            for point in changed:
                self._engine.replace_metadata(point)
            self._commit(dict(self._state().values))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove candidates, which must exist."""
        with self._change() as values:
            known = self._first_points(ids)
            unknown = [id_ for id_ in ids if id_ not in known]
            if unknown:
                missing = listed(unknown, most=SHOWN_VALUES)
                raise InputError(f"{self.name} has no candidate {missing}: nothing was removed")
            removed = self._vectors_of([point.candidate for point in known.values()])
            count = values["candidates"] - len(known)
            vectors = values["vectors"] - len(removed)
            self._commit({**values, "candidates": count, "vectors": vectors, "removed": removed})
            self._clean()

    def compact(self, *, graph_threshold: int = GRAPH_THRESHOLD) -> None:
        """Number of vectors from which searches use the HNSW graph of the database."""
        with self._change() as values:
            if values["vectors"] >= graph_threshold:
                self._commit({**values, "graph": True})

    def save(self, path: Path) -> "JournalStore":
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
        """Whether the numbers of candidates and vectors are those that were written."""
        values, scope = self._state().values, self._state().scope
        found = self._engine.count(scope), self._engine.count(replace(scope, only_first=True))
        names = ("vectors", "candidates")
        return [
            f"{name}: {count:,}, but {values[name]:,} were written"
            for name, count in zip(names, found, strict=True)
            if count != values[name]
        ]

    def repair(self, encoding: Encoding, *, accept_loss: bool = False) -> int:
        """Delete what a killed writer left. Lost points cannot be restored from a database that lost them."""
        with self._change():
            pass
        problems = self.problems()
        if problems:
            raise DatabaseError(f"{self.name}: {'; '.join(problems)}: restore a backup, or build it again")
        return 0

    def marker(self) -> object:
        """Whether the collection is there. A fault of the server is no reason to say that it is not."""
        try:
            return True if self._engine.settings() is not None else None
        except DatabaseError:
            return True

    def delete(self) -> None:
        """Drop the collections of the index."""
        self._engine.drop()
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._engine.close()

    def _state(self) -> State:
        values = self._engine.settings()
        if values is None:
            raise InputError(
                f"{self._address} is not an index: build one with "
                f'"tercet index build FILE --to {self._address}"'
            )
        if values["format"] != FORMAT:
            raise InputError(
                f"{self._address} has format {values['format']}, but this version of tercet reads format "
                f"{FORMAT}: build it again under another name"
            )
        return State(values)

    @contextmanager
    def _change(self) -> Iterator[Mapping[str, Any]]:
        """Be the only writer of this process, after what a killed writer left was deleted."""
        with self._writing:
            self._clean()
            yield self._state().values

    def _clean(self) -> None:
        """Delete points that were removed, and those that a killed writer wrote and nobody reads."""
        values = self._state().values
        self._engine.delete_from(values["next_vector"])
        if values["removed"]:
            self._engine.delete(values["removed"])
            self._engine.write_settings({**values, "removed": []})

    def _commit(self, values: Mapping[str, Any]) -> None:
        self._engine.write_settings({**values, "changes": values["changes"] + 1})

    def _put(
        self,
        items: Sequence[Item],
        vectors: Floats,
        parts: CandidateParts | None,
        metadata: Mapping[str, Any],
        *,
        replacing: bool,
    ) -> None:
        vectors = self._checked(items, vectors, parts)
        with self._change() as values:
            known = self._first_points([item.id for item in items if item.id])
            if replacing:
                items = [
                    replace(item, metadata=merged(known[item.id].metadata, item.metadata))
                    if item.id in known
                    else item
                    for item in items
                ]
            first = values["next_number"]
            named = list(assign_ids(items, first, self._first_points))
            for item in named:
                row_of(item)
            _check_new([item.id for item in named], known, allowed=replacing)
            points = _points(named, parts, first, values["next_vector"])
            self._engine.upsert(points, vectors)
            removed = self._vectors_of([point.candidate for point in known.values()])
            norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
            self._commit(
                {
                    **values,
                    "next_number": first + len(named),
                    "next_vector": values["next_vector"] + len(points),
                    "removed": removed,
                    "candidates": values["candidates"] + len(named) - len(known),
                    "vectors": values["vectors"] + len(points) - len(removed),
                    "max_norm": max(values["max_norm"], float(norms.max(initial=0.0)) * (1 + 1e-6)),
                    "metadata": {**values["metadata"], **metadata},
                }
            )
            if removed:
                self._clean()

    def _checked(self, items: Sequence[Item], vectors: Floats, parts: CandidateParts | None) -> Floats:
        if self.is_chunked and (parts is None or len(parts) != len(items) or not all(parts)):
            raise InputError("this index has a vector for each chunk: add every candidate with its parts")
        if not self.is_chunked and parts is not None:
            raise InputError("this index has one vector for each candidate: add candidates without parts")
        count = len(items) if parts is None else sum(map(len, parts))
        checked = check_vectors(vectors, count=count, width=self.width)
        if self.storage == "float16":
            if checked.size and np.abs(checked).max() > LARGEST_HALF:
                raise InputError(f"float16 holds numbers up to {LARGEST_HALF:,.0f}: build it with float32")
            return checked.astype(np.float16).astype(np.float32)
        return checked

    def _first_points(self, ids: Sequence[str]) -> dict[str, Point]:
        """The first points of candidates by id; unknown ids are left out."""
        if not ids:
            return {}
        scope = replace(self._state().scope, only_first=True, ids=tuple(ids))
        return {point.id: point for point in self._engine.points(scope)}

    def _vectors_of(self, candidates: Sequence[int]) -> list[int]:
        if not candidates:
            return []
        scope = replace(self._state().scope, candidates=tuple(candidates))
        return [point.number for point in self._engine.points(scope)]

    def batches(self, *, with_vectors: bool) -> "Iterator[tuple[list[Item], Floats | None]]":
        points = self._engine.points(replace(self._state().scope, only_first=True))
        while batch := list(islice(points, READ_AT_ONCE)):
            numbers = np.array([point.number for point in batch], dtype=np.int64)
            vectors = _in_order(*self._engine.vectors(numbers), numbers) if with_vectors else None
            yield [_item(point) for point in batch], vectors


class JournalView:
    """One state of an index. Points that vanish during a search raise a ``ChangedError``."""

    def __init__(self, engine: Engine, state: State, *, ef_search: int | None) -> None:
        self._engine, self._values, self._scope = engine, state.values, state.scope
        self._ef_search = ef_search
        self._owners: dict[int, Owner] = {}

    @property
    def total(self) -> int:
        """The number of vectors."""
        return int(self._values["vectors"])

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector that was ever stored."""
        return float(self._values["max_norm"])

    def bound(self) -> int:
        """The number of candidates."""
        return int(self._values["candidates"])

    def select(self, where: Where) -> Filter:
        """The filter of the candidates that meet all conditions."""
        conditions = conditions_of(where)
        if not self.is_empty():
            check_conditions(self, conditions)
            if not self.matches(conditions):
                check_values(self, conditions)
        return self._filter(conditions)

    def by_vectors(
        self, codes: Codes, k: int, *, scale: float, exact: bool, selection: Filter | None = None
    ) -> list[Ranking]:
        """The ``k`` best candidates of each context."""
        check_query(codes, k, scale, width=self._values["width"])
        index = DatabaseVectors(self, selection or (), exact=exact or not self._values["graph"])
        budget = None if index.exact else BUDGET
        return rank_candidates(
            lambda depth: certified_search(
                index, codes, depth, scale=scale, budget=None if budget is None else max(budget, depth)
            ),
            lambda numbers: self._owners,
            k,
            total=self.total,
        )

    def by_words(self, text: str, k: int, selection: Filter | None = None) -> dict[int, float]:
        """Not possible."""
        raise InputError('this database has no lexical index: search with mode="vectors" (--mode vectors)')

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""
        if not len(numbers):
            return {}
        scope = replace(self._scope, only_first=True, candidates=tuple(numbers.tolist()))
        return {point.candidate: _item(point) for point in self._engine.points(scope)}

    def comparable(self, queries: Floats) -> tuple[Floats, Floats]:
        """Scales ``[Q]``, and queries ``[Q, D]`` divided by them, in the precision of the database."""
        if self._values["storage"] == "float16":
            return half_precision(queries)
        return np.ones(len(queries), dtype=np.float32), queries

    def nearest(self, vectors: Floats, k: int, selection: Filter, *, exact: bool) -> Rows:
        """The ``k`` nearest vectors of each of ``[Q, D]``, all in one request."""
        effort = self._ef_search or max(LEAST_EFFORT, int(EFFORT / sqrt(len(vectors))))
        scope = replace(self._scope, filter=tuple(selection))
        return self._engine.nearest(vectors, k, scope, exact=exact, effort=max(effort, k))

    def vectors(self, numbers: Ints) -> Floats:
        """``[C, D]``: vectors by number."""
        if not len(numbers):
            return np.empty((0, self._values["width"]), dtype=np.float32)
        points, vectors = self._engine.vectors(numbers)
        for point in points:
            part = None if point.start is None or point.stop is None else Part(point.start, point.stop)
            self._owners[point.number] = Owner(point.candidate, part)
        return _in_order(points, vectors, numbers)

    def count(self, selection: Filter) -> int:
        """How many candidates meet a filter."""
        return self._engine.count(replace(self._scope, filter=tuple(selection), only_first=True))

    def is_empty(self) -> bool:
        """Whether there are no candidates."""
        return self.bound() == 0

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""
        return sorted({column for point in self._firsts() for column in point.metadata})

    def has_column(self, column: str) -> bool:
        """Whether a candidate has a column."""
        return self.count(has_column(column)) > 0

    def matches(self, conditions: Sequence[Condition]) -> bool:
        """Whether a candidate meets all conditions."""
        return self.count(self._filter(conditions)) > 0

    def incomparable(self, condition: Condition, others: Sequence[Condition]) -> Incomparable | None:
        """The candidates whose value cannot be compared, among those that meet the others."""
        found = [*incomparable(condition), *self._filter(others)]
        count = self.count(found)
        if not count:
            return None
        scope = replace(self._scope, filter=tuple(found), only_first=True)
        point = next(iter(self._engine.points(scope, limit=1)))
        return Incomparable(count, point.id, point.metadata[condition.column])

    def span(self, condition: Condition) -> tuple[Any, Any]:
        """The least and the largest value that an ordering compares."""
        column = condition.column
        values: list[Any] = [text for text in self._texts(column) if text.strip(" ")]
        if not condition.is_textual:
            found = (numbers_of({column: point.metadata.get(column)}) for point in self._firsts())
            numbers = [number for of_one in found for number in of_one.values()]
            values = [int(number) if number.is_integer() else number for number in numbers]
        return min(values, default=None), max(values, default=None)

    def values(self, column: str) -> tuple[list[Any], int]:
        """The most frequent values of a column, at most ``SHOWN_VALUES``, and how many there are."""
        found = [point.metadata[column] for point in self._firsts() if point.metadata.get(column) is not None]
        counts = Counter((type(value).__name__, repr(value)) for value in found)
        by_key = {(type(value).__name__, repr(value)): value for value in found}
        order = sorted(counts, key=lambda key: (-counts[key], key[0], _sortable(by_key[key])))
        return [by_key[key] for key in order[:SHOWN_VALUES]], len(order)

    def _filter(self, conditions: Sequence[Condition]) -> Filter:
        return filter_of(conditions, self._texts)

    def _texts(self, column: str) -> set[str]:
        values = (point.metadata.get(column) for point in self._firsts())
        return {value for value in values if isinstance(value, str)}

    def _firsts(self) -> Iterator[Point]:
        return self._engine.points(replace(self._scope, only_first=True))


def _points(
    items: Sequence[Item], parts: CandidateParts | None, first: int, first_vector: int
) -> list[Point]:
    """A point for each vector of the candidates."""
    points: list[Point] = []
    for candidate, item in enumerate(items, start=first):
        of: Sequence[Part | None] = (None,) if parts is None else parts[candidate - first]
        for at, part in enumerate(of):
            start, stop = (None, None) if part is None else (part.start, part.end)
            number = first_vector + len(points)
            points.append(
                Point(number, candidate, item.id, start, stop, at == 0, item.text, dict(item.metadata or {}))
            )
    return points


def _item(point: Point) -> Item:
    return Item(point.id, point.text, point.metadata)


def _in_order(points: Sequence[Point], vectors: Floats, numbers: Ints) -> Floats:
    """The vectors in the order of their numbers."""
    rows = {point.number: row for row, point in enumerate(points)}
    try:
        return np.ascontiguousarray(vectors[[rows[number] for number in numbers.tolist()]], dtype=np.float32)
    except KeyError:
        raise ChangedError from None


def _check_known(ids: Sequence[str], known: Mapping[str, Point], where: str) -> None:
    unknown = [id_ for id_ in ids if id_ not in known]
    if unknown:
        raise InputError(f"{where} has no candidate {listed(unknown, most=SHOWN_VALUES)}")


def _check_new(ids: Sequence[str], known: Mapping[str, Point], *, allowed: bool) -> None:
    if len(set(ids)) < len(ids):
        raise InputError(f"ids must be distinct, but {Counter(ids).most_common(1)[0][0]!r} is repeated")
    if known and not allowed:
        verb = "exists" if len(known) == 1 else "exist"
        raise InputError(
            f"{listed(list(known), most=SHOWN_VALUES)} {verb} already: update (--update), remove, or "
            "choose other ids"
        )


def _sortable(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, (int, float)) else (1, str(value))
