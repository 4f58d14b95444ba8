"""Texts and contexts out of the rows of a file; every error names the file and the line."""

from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any, TypeVar

from tercet.data.rows import Row
from tercet.errors import DataError, InputError
from tercet.inputs import check_context, check_text
from tercet.records import Context

Checked = TypeVar("Checked")


def texts(rows: Iterable[Row], column: str | None = None) -> Iterator[str]:
    """The text of each row: of ``column``, of the only column, or of the one called ``text``."""
    return (_checked(row, column, "text", check_text) for row in rows)


def contexts(rows: Iterable[Row], column: str | None = None) -> Iterator[Context]:
    """The context of each row, a string or a list of turns, by the same rule."""
    return (_checked(row, column, "context", check_context) for row in rows)


def text_and_rest(row: Row, column: str | None = None) -> tuple[str, dict[str, Any]]:
    """The text of a row, and its other columns."""
    named = column or _only_or_usual(row, "text")
    rest = {name: value for name, value in row.columns.items() if name != named}
    return check_column(row, named, check_text), rest


def pairs(
    rows: Iterable[Row], *, context: str | None, candidate: str | None
) -> Iterator[tuple[Context, str]]:
    """A context and a candidate from each row."""
    for row in rows:
        yield (
            _checked(row, context or "context", "context", check_context),
            _checked(row, candidate or "candidate", "candidate", check_text),
        )


def check_column(row: Row, column: str, check: Callable[[Any, str], Checked]) -> Checked:
    """What ``check`` makes of a column's value."""
    if column not in row.columns:
        raise DataError(f"{row.where}: there is no column {column!r}, only {_listed(row)}")
    try:
        return check(row.columns[column], f"column {column!r}")
    except InputError as error:
        raise DataError(f"{row.where}: {error}") from None


def filled(row: Row, column: str) -> Any:
    """A column's value, whatever it is, if there is one."""
    value = check_column(row, column, lambda value, _: value)
    if value is None or value == "":
        raise DataError(f"{row.where}: column {column!r} is empty: label the row, or leave it out")
    return value


def number(row: Row, column: str) -> float:
    """A column's value as a finite number."""
    value = filled(row, column)
    try:
        found = float(value)
    except (OverflowError, TypeError, ValueError):
        raise DataError(f"{row.where}: column {column!r} must be a number, got {value!r}") from None
    if not isfinite(found):
        raise DataError(f"{row.where}: column {column!r} must be a finite number, got {value!r}")
    return found


def numbers(row: Row, column: str) -> tuple[float, ...]:
    """A column's list as finite numbers."""
    values = filled(row, column)
    if not isinstance(values, list):
        raise DataError(f"{row.where}: column {column!r} must be a list of numbers, got {values!r}")
    return tuple(number(Row(row.where, {column: value}), column) for value in values)


def _checked(row: Row, column: str | None, usual: str, check: Callable[[object, str], Checked]) -> Checked:
    return check_column(row, column or _only_or_usual(row, usual), check)


def _only_or_usual(row: Row, usual: str) -> str:
    if len(row.columns) == 1:
        return next(iter(row.columns))
    if usual not in row.columns:
        raise DataError(f"{row.where}: say which column to read (--column): {_listed(row)}")
    return usual


def _listed(row: Row) -> str:
    return ", ".join(map(repr, row.columns)) or "none at all"
