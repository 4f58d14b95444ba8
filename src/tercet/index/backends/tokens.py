"""Metadata as tokens and numbers, which databases without SQL can filter by.

Each value of a candidate becomes a token with its column; further tokens say which columns are there and how
they compare. Equal tokens are equal values in the sense of ``index.conditions``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tercet.files.structured import json_text
from tercet.index.conditions import ORDERINGS, Condition, as_number

HAS, FILLED, NUMERIC, TEXTUAL, BLANK, EQUAL = "has", "filled", "number", "text", "blank", "="


@dataclass(frozen=True, slots=True)
class AnyToken:
    """Candidates that have one of the tokens, or lack the column that ``or_missing`` names; or all others."""

    tokens: tuple[str, ...]
    or_missing: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NumberOrder:
    """Candidates whose number compares with a value."""

    column: str
    operator: str
    value: float


Filter = Sequence[AnyToken | NumberOrder]
"""All of them must hold."""


def token(kind: str, column: str, value: Any = None) -> str:
    """The token of a column, or of a value of it."""
    return json_text([kind, column]) if value is None else json_text([kind, column, _value(value)])


def tokens_of(metadata: Mapping[str, Any]) -> list[str]:
    """All tokens of a candidate."""
    return [each for column, value in metadata.items() for each in _tokens(column, value)]


def numbers_of(metadata: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a candidate by column, also those that are stored as texts."""
    found = {column: _number(value) for column, value in metadata.items()}
    return {column: float(number) for column, number in found.items() if number is not None}


def filter_of(conditions: Iterable[Condition], values: Callable[[str], Iterable[Any]]) -> Filter:
    """The filter of conditions.

    Args:
        values: the distinct texts of a column; databases compare numbers, but not the order of texts.
    """
    return [_clause(condition, values) for condition in conditions]


def incomparable(condition: Condition) -> Filter:
    """The filter of the candidates whose value cannot be compared with the value of an ordering."""
    column = condition.column
    comparable = TEXTUAL if condition.is_textual else NUMERIC
    bad = (token(comparable, column), token(BLANK, column))
    return [AnyToken((token(FILLED, column),)), AnyToken(bad, negated=True)]


def has_column(column: str) -> Filter:
    """The filter of the candidates that have a column."""
    return [AnyToken((token(HAS, column),))]


def _clause(condition: Condition, values: Callable[[str], Iterable[Any]]) -> AnyToken | NumberOrder:
    if condition.operator in ORDERINGS:
        return _ordering(condition, values)
    column = condition.column
    tokens = tuple(token(EQUAL, column, value) for value in condition.values if value is not None)
    missing = token(FILLED, column) if None in condition.values else None
    return AnyToken(tokens, or_missing=missing, negated=condition.operator in ("!=", "not in"))


def _ordering(condition: Condition, values: Callable[[str], Iterable[Any]]) -> AnyToken | NumberOrder:
    if not condition.is_textual:
        value = as_number(condition.value) if isinstance(condition.value, str) else condition.value
        return NumberOrder(condition.column, condition.operator, float(value or 0))
    compare = {"<": str.__lt__, "<=": str.__le__, ">": str.__gt__, ">=": str.__ge__}[condition.operator]
    fitting = [
        value
        for value in values(condition.column)
        if isinstance(value, str) and value.strip(" ") and compare(value, condition.value)
    ]
    return AnyToken(tuple(token(EQUAL, condition.column, value) for value in fitting))


def _tokens(column: str, value: Any) -> list[str]:
    found = [token(HAS, column)]
    if value is None:
        return found
    found.append(token(FILLED, column))
    if isinstance(value, str):
        found.append(token(TEXTUAL if value.strip(" ") else BLANK, column))
    if _number(value) is not None:
        found.append(token(NUMERIC, column))
    if isinstance(value, (str, int, float)):
        found.append(token(EQUAL, column, value))
    return found


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        return as_number(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _value(value: Any) -> list[Any]:
    """A value in a form in which equal values are written alike: 1, 1.0 and True are equal."""
    if isinstance(value, str):
        return ["s", value]
    number = int(value) if float(value).is_integer() else float(value)
    return ["n", number]
