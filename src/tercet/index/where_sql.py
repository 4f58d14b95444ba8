"""Conditions on metadata as SQL for the table of candidates."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from tercet.files.structured import json_text
from tercet.index.conditions import ORDERINGS, Condition, as_number

ENTRY = "SELECT 1 FROM json_each(candidates.metadata) AS entry WHERE entry.key = ?"
ENTRIES = "FROM candidates, json_each(candidates.metadata) AS entry"
FILLED = "entry.type != 'null'"
NUMERIC = "CASE entry.type WHEN 'text' THEN as_number(entry.atom) ELSE entry.atom END"


class Clause(NamedTuple):
    """A part of a WHERE clause and the values of its question marks."""

    sql: str
    values: list[Any]


def clause_of(condition: Condition) -> Clause:
    """The clause that holds for the candidates that meet a condition."""
    if condition.operator in ORDERINGS:
        return _ordering(condition)
    clause = _equality(condition)
    negated = condition.operator in ("!=", "not in")
    return Clause(f"NOT ({clause.sql})", clause.values) if negated else clause


def all_of(conditions: Iterable[Condition]) -> Clause:
    """The clause that holds for the candidates that meet all conditions."""
    clauses = [clause_of(condition) for condition in conditions]
    values = [value for clause in clauses for value in clause.values]
    return Clause(" AND ".join(["1", *(clause.sql for clause in clauses)]), values)


def incomparable(condition: Condition) -> Clause:
    """The clause of the candidates whose value cannot be compared with the value of an ordering."""
    numbers = "entry.type IN ('integer', 'real') OR (entry.type = 'text' AND as_number(entry.atom) NOT NULL)"
    comparable = "entry.type = 'text'" if condition.is_textual else numbers
    empty = "entry.type = 'text' AND trim(entry.atom) = ''"
    sql = f"EXISTS ({ENTRY} AND {FILLED} AND NOT ({comparable}) AND NOT ({empty}))"
    return Clause(sql, [condition.column])


def _equality(condition: Condition) -> Clause:
    choices = json_text([value for value in condition.values if value is not None])
    chosen = f"EXISTS ({ENTRY} AND entry.atom IN (SELECT value FROM json_each(?)))"
    if None not in condition.values:
        return Clause(chosen, [condition.column, choices])
    missing = f"NOT EXISTS ({ENTRY} AND {FILLED})"
    return Clause(f"({chosen} OR {missing})", [condition.column, choices, condition.column])


def _ordering(condition: Condition) -> Clause:
    types, stored, value = "entry.type IN ('integer', 'real', 'text')", NUMERIC, condition.value
    if condition.is_textual:
        types, stored = "entry.type = 'text' AND trim(entry.atom) != ''", "entry.atom"
    elif isinstance(value, str):
        value = as_number(value)
    return Clause(
        f"EXISTS ({ENTRY} AND {types} AND {stored} {condition.operator} ?)", [condition.column, value]
    )


def sql_number(value: object) -> int | float | None:
    """The SQL function ``as_number``: the number that a text spells, else NULL."""
    return as_number(value) if isinstance(value, str) else None
