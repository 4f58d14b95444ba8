"""The candidates of a local store that meet conditions on their metadata."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.index import metadata_checks
from tercet.index.conditions import SHOWN_VALUES, Condition
from tercet.index.metadata_checks import Incomparable, check_conditions, check_values
from tercet.index.where_sql import ENTRIES, ENTRY, FILLED, NUMERIC, Clause, all_of, incomparable

if TYPE_CHECKING:
    from tercet.index.database import Database
    from tercet.records import Ints


CONDITIONS_PER_QUERY = 100
"""SQLite limits the depth of an expression to 1,000."""


def select(database: "Database", conditions: Sequence[Condition]) -> "Ints":
    """The numbers of the candidates that meet all conditions.

    Raises an ``InputError`` if no candidate has one of the columns, or if a condition alone holds for none.
    An empty result means that the conditions hold for some candidates each, but for none together.
    """
    table = SqliteMetadata(database)
    if table.is_empty():
        return np.empty(0, dtype=np.int64)
    check_conditions(table, conditions)
    numbers = _numbers(database, conditions)
    if not len(numbers):
        check_values(table, conditions)
    return numbers


def metadata_columns(database: "Database") -> list[str]:
    """The names in the metadata of all candidates, sorted."""
    return SqliteMetadata(database).columns()


def check_column(database: "Database", column: str) -> None:
    """Raise if no candidate has a column in its metadata; the error lists the columns that exist."""
    metadata_checks.check_column(SqliteMetadata(database), column)


class SqliteMetadata:
    """The metadata of the candidates in a database of SQLite."""

    def __init__(self, database: "Database") -> None:
        self._database = database

    def is_empty(self) -> bool:
        """Whether there are no candidates."""
        return not self._database.query("SELECT 1 FROM candidates LIMIT 1")

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""
        rows = self._database.query(f"SELECT DISTINCT entry.key {ENTRIES} ORDER BY entry.key")
        return [key for (key,) in rows]

    def has_column(self, column: str) -> bool:
        """Whether a candidate has a column."""
        return bool(
            self._database.query(f"SELECT 1 FROM candidates WHERE EXISTS ({ENTRY}) LIMIT 1", [column])
        )

    def matches(self, conditions: Sequence[Condition]) -> bool:
        """Whether a candidate meets all conditions."""
        return bool(len(_numbers(self._database, conditions)))

    def incomparable(self, condition: Condition, others: Sequence[Condition]) -> Incomparable | None:
        """The candidates whose value cannot be compared, among those that meet the others."""
        found = _matching(self._database, incomparable(condition))
        if len(found):
            found = np.intersect1d(found, _numbers(self._database, others))
        for item in self._database.items(found[:1]).values():
            return Incomparable(len(found), item.id, (item.metadata or {})[condition.column])
        return None

    def span(self, condition: Condition) -> tuple[Any, Any]:
        """The least and the largest value that an ordering compares."""
        value = "entry.atom" if condition.is_textual else NUMERIC
        query = f"SELECT min({value}), max({value}) {ENTRIES} WHERE entry.key = ? AND {FILLED}"
        ((low, high),) = self._database.query(query, [condition.column])
        return low, high

    def values(self, column: str) -> tuple[list[Any], int]:
        """The most frequent values of a column, at most ``SHOWN_VALUES``, and how many there are."""
        of_column = f"{ENTRIES} WHERE entry.key = ? AND {FILLED}"
        grouped = (
            f"SELECT entry.type, entry.value, count(*) AS n {of_column} GROUP BY entry.type, entry.value"
        )
        ((count,),) = self._database.query(f"SELECT count(*) FROM ({grouped})", [column])
        rows = self._database.query(f"{grouped} ORDER BY n DESC, entry.value LIMIT {SHOWN_VALUES}", [column])
        return [_value(type_, value) for type_, value, _ in rows], int(count)


def _numbers(database: "Database", conditions: Sequence[Condition]) -> "Ints":
    """The numbers of the candidates that meet all conditions, sorted."""
    parts = range(0, max(len(conditions), 1), CONDITIONS_PER_QUERY)
    found = (_matching(database, all_of(conditions[at : at + CONDITIONS_PER_QUERY])) for at in parts)
    return reduce(np.intersect1d, found)


def _matching(database: "Database", clause: Clause) -> "Ints":
    rows = database.query(f"SELECT number FROM candidates WHERE {clause.sql} ORDER BY number", clause.values)
    return np.array([number for (number,) in rows], dtype=np.int64)


def _value(type_: str, value: Any) -> Any:
    return bool(value) if type_ in ("true", "false") else value
