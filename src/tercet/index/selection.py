"""The candidates of a store that meet conditions, and errors that say what could have been asked."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.errors import InputError, UnmatchedConditionError
from tercet.index.conditions import EQUALITIES, ORDERINGS, SHOWN_VALUES, Condition
from tercet.index.where_sql import ENTRIES, ENTRY, FILLED, NUMERIC, Clause, all_of, incomparable
from tercet.inputs import SHOWN_CHARACTERS, listed, shortened

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
    if not database.query("SELECT 1 FROM candidates LIMIT 1"):
        return np.empty(0, dtype=np.int64)
    for condition in conditions:
        check_column(database, condition.column)
        if condition.operator in ORDERINGS:
            _check_comparable(database, condition, conditions)
    numbers = _numbers(database, conditions)
    if not len(numbers):
        for condition in conditions:
            _check_value(database, condition)
    return numbers


def metadata_columns(database: "Database") -> list[str]:
    """The names in the metadata of all candidates, sorted."""
    return [key for (key,) in database.query(f"SELECT DISTINCT entry.key {ENTRIES} ORDER BY entry.key")]


def check_column(database: "Database", column: str) -> None:
    """Raise if no candidate has a column in its metadata; the error lists the columns that exist."""
    if not database.query(f"SELECT 1 FROM candidates WHERE EXISTS ({ENTRY}) LIMIT 1", [column]):
        known = listed(metadata_columns(database), most=SHOWN_VALUES)
        which = f"the columns are {known}" if known else "the candidates have no metadata"
        raise UnmatchedConditionError(
            f"no candidate has {column!r} in its metadata: {which}", missing_column=column
        )


def _numbers(database: "Database", conditions: Sequence[Condition]) -> "Ints":
    """The numbers of the candidates that meet all conditions, sorted."""
    parts = range(0, max(len(conditions), 1), CONDITIONS_PER_QUERY)
    found = (_matching(database, all_of(conditions[at : at + CONDITIONS_PER_QUERY])) for at in parts)
    return reduce(np.intersect1d, found)


def _matching(database: "Database", clause: Clause) -> "Ints":
    rows = database.query(f"SELECT number FROM candidates WHERE {clause.sql} ORDER BY number", clause.values)
    return np.array([number for (number,) in rows], dtype=np.int64)


def _check_comparable(database: "Database", condition: Condition, others: Sequence[Condition]) -> None:
    """Raise if the value of a candidate cannot be compared, unless an equality excludes the candidate."""
    found = _matching(database, incomparable(condition))
    if not len(found):
        return
    equalities = [other for other in others if other.operator in EQUALITIES]
    found = np.intersect1d(found, _numbers(database, equalities))
    for item in database.items(found[:1]).values():
        others_too = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        value = shortened(repr((item.metadata or {})[condition.column]), SHOWN_CHARACTERS)
        raise InputError(
            f"{condition} cannot be compared with {value} of candidate {item.id!r}{others_too}: "
            "numbers compare with numbers and other strings with strings; "
            'exclude such values with "!=" or "not in"'
        )


def _check_value(database: "Database", condition: Condition) -> None:
    """Raise if a condition alone holds for no candidate; a list without values is meant."""
    if condition.values and not len(_numbers(database, [condition])):
        raise UnmatchedConditionError(f"no candidate has {condition}: {_existing(database, condition)}")


def _existing(database: "Database", condition: Condition) -> str:
    """The values that candidates have, the most frequent first, or the range of an ordering."""
    column, of_column = condition.column, f"{ENTRIES} WHERE entry.key = ? AND {FILLED}"
    if condition.operator in ORDERINGS:
        value = "entry.atom" if condition.is_textual else NUMERIC
        ((low, high),) = database.query(f"SELECT min({value}), max({value}) {of_column}", [column])
        return f"the values of {column!r} go from {low!r} to {high!r}"
    grouped = f"SELECT entry.type, entry.value, count(*) AS n {of_column} GROUP BY entry.type, entry.value"
    ((count,),) = database.query(f"SELECT count(*) FROM ({grouped})", [column])
    rows = database.query(f"{grouped} ORDER BY n DESC, entry.value LIMIT {SHOWN_VALUES}", [column])
    values = [_value(type_, value) for type_, value, _ in rows]
    return f"the values of {column!r} are {listed(values, most=SHOWN_VALUES, more=count - len(values))}"


def _value(type_: str, value: Any) -> Any:
    return bool(value) if type_ in ("true", "false") else value
