"""A search in PostgreSQL: one read-only transaction, so that changes meanwhile cannot make a proof false."""

from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psycopg

from tercet.errors import InputError
from tercet.index.backends.postgres.metadata import PostgresMetadata
from tercet.index.backends.postgres.vectors import array_parameter, decoded
from tercet.index.backends.postgres.where import Clause, all_of
from tercet.index.backends.products import DatabaseVectors, Rows, half_precision
from tercet.index.base import check_query
from tercet.index.certified import certified_search
from tercet.index.conditions import Where, conditions_of
from tercet.index.items import Item
from tercet.index.metadata_checks import check_conditions, check_values
from tercet.index.owners import Owner
from tercet.index.ranking import Ranking, rank_candidates
from tercet.records import Codes, Floats, Ints, Part

if TYPE_CHECKING:
    from tercet.index.backends.postgres.store import Settings

EFFORT, LEAST_EFFORT, MOST_EFFORT = 256, 32, 1000
"""Vectors of the graph that a search with one code visits, the least per code, and what pgvector allows."""
BUDGET = 20_000
"""How many candidates of a context may be scored to prove a result that a graph found."""
SCANNED_SHARE = 0.1
"""Filters that leave less than this share of the candidates are evaluated first, and the rest is scanned."""
ROUNDED_NORM = 1 + 1e-6
"""The norms in the table are rounded."""
LEXEMES = (
    "SELECT string_agg('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''', ' | ')::tsquery"
    " FROM unnest(to_tsvector(%s::regconfig, %s))"
)
"""A query for any of the words of a text: ``plainto_tsquery`` would ask for all of them."""


class Extent(NamedTuple):
    """What bounds a search: the numbers that exist and the largest norm, and whether there is a graph."""

    candidates: int
    vectors: int
    max_norm: float
    has_graph: bool


class PostgresView:
    """The candidates at the moment of the first query."""

    def __init__(self, connection: psycopg.Connection[Any], settings: "Settings") -> None:
        self._connection, self._settings = connection, settings
        self._place = settings.place

    @cached_property
    def extent(self) -> Extent:
        """The bounds of a search. Indexes answer it at once, as ``count(*)`` would not."""
        ends = "SELECT coalesce(max(number) - min(number) + 1, 0) FROM"
        candidates, vectors = self._place.table(), self._place.table("_vectors")
        row = self._row(
            f"SELECT ({ends} {candidates}), ({ends} {vectors}), "
            f"(SELECT coalesce(max(norm), 0) FROM {vectors}), "
            "EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)",
            [self._place.table("_vectors_hnsw")],
        )
        return Extent(row[0], row[1], row[2] * ROUNDED_NORM, row[3])

    @property
    def total(self) -> int:
        """The number of vectors, or a larger number."""
        return self.extent.vectors

    @property
    def max_norm(self) -> float:
        """Norm of the longest vector."""
        return self.extent.max_norm

    def bound(self) -> int:
        """The number of candidates, or a larger number."""
        return self.extent.candidates

    def select(self, where: Where) -> Clause:
        """The condition of the candidates in SQL."""
        conditions = conditions_of(where)
        clause, table = all_of(conditions), PostgresMetadata(self.query, self._place)
        if not table.is_empty():
            check_conditions(table, conditions)
            if not table.matches(conditions):
                check_values(table, conditions)
        return clause

    def by_vectors(
        self, codes: Codes, k: int, *, scale: float, exact: bool, selection: Clause | None = None
    ) -> list[Ranking]:
        """The ``k`` best candidates of each context."""
        check_query(codes, k, scale, width=self._settings.width)
        total = max(self.extent.vectors, 1)
        index = DatabaseVectors(self, selection, exact=exact or not self._uses_graph(selection))
        budget = None if index.exact else BUDGET
        return rank_candidates(
            lambda depth: certified_search(
                index, codes, depth, scale=scale, budget=None if budget is None else max(budget, depth)
            ),
            self._owners,
            k,
            total=total,
        )

    def by_words(self, text: str, k: int, selection: Clause | None = None) -> dict[int, float]:
        """The ``ts_rank`` of at most ``k`` candidates that have a word of a text, best first."""
        if not self._settings.lexical:
            raise InputError(
                f"{self._place.address} has no lexical index: rebuild it with lexical=True (--lexical)"
            )
        condition = f" AND {selection.sql}" if selection else ""
        rows = self.query(
            f"SELECT number, ts_rank(words, query, 1) AS score "
            f"FROM {self._place.table()} AS candidate, ({LEXEMES}) AS asked (query) "
            f"WHERE words @@ query{condition} ORDER BY score DESC, number LIMIT %s",
            [self._settings.text_search, text, *(selection.values if selection else []), k],
        )
        return {number: float(score) for number, score in rows}

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""
        rows = self.query(
            f"SELECT number, id, text, metadata FROM {self._place.table()} WHERE number = ANY(%s)",
            [numbers.tolist()],
        )
        return {number: Item(*row) for number, *row in rows}

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        rows: list[tuple[Any, ...]] = self._connection.execute(sql.encode(), values).fetchall()
        return rows

    def nearest(self, vectors: Floats, k: int, selection: Clause | None, *, exact: bool) -> Rows:
        """The ``k`` nearest vectors of each of ``[Q, D]``, all in one query: position, number, distance."""
        if not exact:
            self._tune(len(vectors), k)
        # with an addition, the expression is not that of the graph: every vector is compared
        distance = "(vector.embedding <#> code.vector)" + (" + 0" if exact else "")
        joined, condition = "", ""
        if selection is not None:
            joined = f" JOIN {self._place.table()} AS candidate ON candidate.number = vector.candidate"
            condition = f" WHERE {selection.sql}"
        kind = self._settings.kind
        codes = array_parameter(self._connection, kind, vectors)
        return np.array(
            self.query(
                f"SELECT code.position, near.number, near.distance FROM unnest(%s::{kind}[]) "
                "WITH ORDINALITY AS code (vector, position), LATERAL ("
                f"SELECT vector.number, {distance} AS distance FROM {self._place.table('_vectors')} AS vector"
                f"{joined}{condition} ORDER BY {distance} LIMIT %s) AS near",
                [codes, *(selection.values if selection else []), k],
            ),
            dtype=np.float64,
        ).reshape(-1, 3)

    def vectors(self, numbers: Ints) -> Floats:
        """``[C, D]``: vectors by number."""
        kind = self._settings.kind
        rows = self.query(
            f"SELECT vector.number, {kind}_send(embedding) FROM {self._place.table('_vectors')} AS vector "
            "WHERE number = ANY(%s) ORDER BY number",
            [numbers.tolist()],
        )
        found = decoded(kind, [value for _, value in rows], self._settings.width)
        return found[np.searchsorted([number for number, _ in rows], numbers)]

    def comparable(self, queries: Floats) -> tuple[Floats, Floats]:
        """Scales ``[Q]`` and queries ``[Q, D]``, as the type of the column holds them without its limits."""
        if self._settings.kind == "vector":
            return np.ones(len(queries), dtype=np.float32), queries
        return half_precision(queries)

    def _row(self, sql: str, values: Sequence[Any]) -> tuple[Any, ...]:
        return self.query(sql, values)[0]

    def _owners(self, numbers: Ints) -> dict[int, Owner]:
        rows = self.query(
            f"SELECT number, candidate, start, stop FROM {self._place.table('_vectors')} "
            "WHERE number = ANY(%s)",
            [numbers.tolist()],
        )
        return {
            number: Owner(candidate, None if start is None else Part(start, stop))
            for number, candidate, start, stop in rows
        }

    def _uses_graph(self, selection: Clause | None) -> bool:
        """Whether there is a graph, and the filter leaves enough candidates to find them by it."""
        if not self.extent.has_graph or selection is None:
            return self.extent.has_graph
        (count,) = self._row(
            f"SELECT count(*) FROM {self._place.table()} AS candidate WHERE {selection.sql}", selection.values
        )
        return bool(count > SCANNED_SHARE * self.extent.candidates)

    def _tune(self, codes: int, k: int) -> None:
        """Set how far the graph is searched, for this transaction."""
        effort = self._place.options.ef_search or max(LEAST_EFFORT, int(EFFORT / sqrt(codes)))
        self.query(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', %s, true)",
            [str(min(max(effort, k), MOST_EFFORT)), "strict_order"],
        )
