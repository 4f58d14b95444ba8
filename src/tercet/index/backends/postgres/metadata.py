"""The metadata of all candidates in PostgreSQL, for the checks of conditions."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tercet.index.backends.postgres.place import Place
from tercet.index.backends.postgres.where import ATOM, ENTRY, FILLED, all_of, incomparable, ordered_value
from tercet.index.conditions import SHOWN_VALUES, Condition
from tercet.index.metadata_checks import Incomparable

Query: TypeAlias = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""The rows of a query with its values."""


class PostgresMetadata:
    """The metadata in the table of candidates."""

    def __init__(self, query: Query, place: Place) -> None:
        self._query, self._from = query, f"FROM {place.table()} AS candidate"

    def is_empty(self) -> bool:
        """Whether there are no candidates."""
        return not self._query(f"SELECT 1 {self._from} LIMIT 1", [])

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""
        keys = f'SELECT DISTINCT jsonb_object_keys(candidate.metadata) COLLATE "C" AS key {self._from}'
        return [key for (key,) in self._query(f"{keys} ORDER BY key", [])]

    def has_column(self, column: str) -> bool:
        """Whether a candidate has a column."""
        exists = f"SELECT 1 {self._from} WHERE jsonb_exists(candidate.metadata, %s) LIMIT 1"
        return bool(self._query(exists, [column]))

    def matches(self, conditions: Sequence[Condition]) -> bool:
        """Whether a candidate meets all conditions."""
        clause = all_of(conditions)
        return bool(self._query(f"SELECT 1 {self._from} WHERE {clause.sql} LIMIT 1", clause.values))

    def count(self, conditions: Sequence[Condition]) -> int:
        """How many candidates meet all conditions."""
        clause = all_of(conditions)
        return int(self._query(f"SELECT count(*) {self._from} WHERE {clause.sql}", clause.values)[0][0])

    def incomparable(self, condition: Condition, others: Sequence[Condition]) -> Incomparable | None:
        """The candidates whose value cannot be compared, among those that meet the others."""
        bad, other = incomparable(condition), all_of(others)
        rows = self._query(
            f"SELECT count(*) OVER (), candidate.id, {ENTRY} {self._from} "
            f"WHERE {bad.sql} AND {other.sql} ORDER BY candidate.number LIMIT 1",
            [condition.column, *bad.values, *other.values],
        )
        return Incomparable(*rows[0]) if rows else None

    def span(self, condition: Condition) -> tuple[Any, Any]:
        """The least and the largest value that an ordering compares."""
        value = ordered_value(condition)
        ((low, high),) = self._query(
            f"SELECT to_jsonb(min(value)), to_jsonb(max(value)) FROM (SELECT {value.sql} {self._from}) "
            "AS values (value)",
            value.values,
        )
        return low, high

    def values(self, column: str) -> tuple[list[Any], int]:
        """The most frequent values of a column, at most ``SHOWN_VALUES``, and how many there are."""
        filled, atom = FILLED.format(entry=ENTRY), ATOM.format(entry=ENTRY)
        rows = self._query(
            f"SELECT value, count(*) OVER () FROM (SELECT {ENTRY}, {atom} {self._from} WHERE {filled}) "
            "AS entries (value, atom) GROUP BY value, atom "
            f"ORDER BY count(*) DESC, value, atom LIMIT {SHOWN_VALUES}",
            [column, column, column],
        )
        return [value for value, _ in rows], (rows[0][1] if rows else 0)
