"""Texts, contexts and numbers from the columns of rows. Errors name the file and the line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, TypeAlias, TypeVar

from tercet.data.empty_rows import is_empty, without_empty
from tercet.data.problems import EmptyCellError, MissingColumnError, gathered
from tercet.data.rows import Row
from tercet.errors import DataError, InputError
from tercet.files.parsing import parse_json
from tercet.inputs import check_context, check_text, listed
from tercet.records import Context

Checked = TypeVar("Checked")
Rest: TypeAlias = dict[str, Any]
"""The columns of a row that are not read."""

JOIN = "\n"
"""Stands between the texts of several columns."""


def texts(rows: Iterable[Row], column: str | Sequence[str] | None = None) -> Iterator[str]:
    """The text of each row; rows that cannot be used are listed in one error.

    Args:
        column: the column to read; the texts of several are joined by a line break. Default: the only column,
            or the one called ``text``.
    """
    return gathered(rows, lambda row: text_and_rest(row, column, keep=False)[0])


def contexts(rows: Iterable[Row], column: str | Sequence[str] | None = None) -> Iterator[Context]:
    """The context of each row, a string or a list of turns; rows that cannot be used are listed in one error.

    Args:
        column: as in ``texts``; the default is the only column, or the one called ``context``.
    """
    return gathered(rows, lambda row: context_and_rest(row, column, keep=False)[0])


def text_and_rest(
    row: Row, column: str | Sequence[str] | None = None, *, keep: bool = True
) -> tuple[str, Rest]:
    """The text of a row, and its other columns, which are read only to ``keep`` them."""
    names = chosen_columns(row, column, "text")
    return _text(row, names), _rest(row, names) if keep else {}


def context_and_rest(
    row: Row, column: str | Sequence[str] | None = None, *, keep: bool = True
) -> tuple[Context, Rest]:
    """The context of a row, and its other columns, which are read only to ``keep`` them."""
    names = chosen_columns(row, column, "context", "text")
    context = context_of(row, names[0]) if len(names) == 1 else _text(row, names)
    return context, _rest(row, names) if keep else {}


def pair_and_rest(row: Row, *, context: str, candidate: str, keep: bool = True) -> tuple[Context, str, Rest]:
    """The context and the candidate of a row, and its other columns, which are read only to ``keep`` them."""
    return (
        context_of(row, context),
        check_column(row, candidate, check_text),
        _rest(row, (context, candidate)) if keep else {},
    )


def pairs(
    rows: Iterable[Row], *, context: str | None, candidate: str | None
) -> Iterator[tuple[Context, str]]:
    """The context and the candidate of each row."""
    names = {"context": context or "context", "candidate": candidate or "candidate"}
    return gathered(rows, lambda row: pair_and_rest(row, **names, keep=False)[:2])


def with_text(
    rows: Iterable[Row], column: str | Sequence[str] | None = None, *, default: str = "text"
) -> Iterator[Row]:
    """The rows that have a text in one of the columns at least; a warning counts the others.

    Args:
        column: as in ``texts`` and ``contexts``.
        default: the column that is read if there are several and none is chosen.
    """

    def empty(row: Row) -> Sequence[str]:
        defaults = (default, "text") if default == "context" else (default,)
        names = chosen_columns(row, column, *defaults)
        return names if all(name in row.columns and is_empty(row.columns[name]) for name in names) else ()

    return without_empty(rows, empty)


def with_all(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[Row]:
    """The rows in which none of the columns is empty; a warning counts the others."""
    return without_empty(
        rows, lambda row: [name for name in columns if name in row.columns and is_empty(row.columns[name])]
    )


def chosen_columns(row: Row, column: str | Sequence[str] | None, *defaults: str) -> tuple[str, ...]:
    """The columns to read: those chosen, or the only one, or the first of ``defaults`` that the row has."""
    if column:
        return (column,) if isinstance(column, str) else tuple(column)
    if len(row.columns) == 1:
        return tuple(row.columns)
    found = next((name for name in defaults if name in row.columns), None)
    if found is None:
        names = listed(row.columns) or "an empty row"
        option = "--context-column" if defaults[0] == "context" else "--column"
        raise MissingColumnError(f"{row.location}: choose the column to read ({option}): {names}")
    return (found,)


def context_of(row: Row, column: str) -> Context:
    """The value of a column as a context; a JSON list of strings in a CSV cell is a list of turns."""
    return check_column(_with_list(row, column, str), column, check_context)


def check_column(row: Row, column: str, check: Callable[[Any, str], Checked]) -> Checked:
    """The value of a column, as ``check`` returns it."""
    _check_present(row, (column,))
    value = row.columns[column]
    try:
        return check(value, f"column {column!r}")
    except InputError as error:
        kind = EmptyCellError if is_empty(value) else DataError
        raise kind(f"{row.location}: {error}") from None


def filled(row: Row, column: str) -> Any:
    """The value of a column, which must not be empty."""
    value = check_column(row, column, lambda value, _: value)
    if value is None or value == "":
        raise EmptyCellError(f"{row.location}: column {column!r} is empty: fill it or remove the row")
    return value


def number(row: Row, column: str) -> float:
    """The value of a column as a finite number."""
    value = filled(row, column)
    try:
        converted = float(value)
    except (OverflowError, TypeError, ValueError):
        raise DataError(f"{row.location}: column {column!r} must be a number, got {value!r}") from None
    if not isfinite(converted):
        raise DataError(f"{row.location}: column {column!r} must be a finite number, got {value!r}")
    return converted


def numbers(row: Row, column: str) -> tuple[float, ...]:
    """The value of a column as a list of finite numbers; in CSV, a JSON list."""
    filled(row, column)
    values = _with_list(row, column, (int, float)).columns[column]
    if not isinstance(values, list):
        raise DataError(f"{row.location}: column {column!r} must be a list of numbers, got {values!r}")
    return tuple(number(Row(row.location, {column: value}), column) for value in values)


def _text(row: Row, names: Sequence[str]) -> str:
    """The texts of the columns that are not empty, at least one."""
    _check_present(row, names)
    present = [name for name in names if not is_empty(row.columns[name])] or names[:1]
    if len(names) > 1 and is_empty(row.columns[present[0]]):
        raise EmptyCellError(f"{row.location}: the columns {listed(names)} are all empty")
    return JOIN.join(check_column(row, name, check_text) for name in present)


def _rest(row: Row, names: Sequence[str]) -> Rest:
    return {other: value for other, value in row.columns.items() if other not in names}


def _with_list(row: Row, column: str, item: type | tuple[type, ...]) -> Row:
    """The row, with a list in a column whose cell is the JSON of a list of such items.

    Only in files without types, such as CSV; any other cell that starts with ``[`` stays a text.
    """
    cell = row.columns.get(column)
    if not row.untyped or not isinstance(cell, str) or not cell.lstrip().startswith("["):
        return row
    try:
        value = parse_json(cell)
    except ValueError:
        return row
    if not isinstance(value, list) or not all(isinstance(each, item) for each in value):
        return row
    return Row(row.location, {**row.columns, column: value}, row.untyped)


def _check_present(row: Row, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in row.columns]
    if missing:
        column, is_ = ("column", "is") if len(missing) == 1 else ("columns", "are")
        raise MissingColumnError(
            f"{row.location}: {column} {listed(missing)} {is_} missing; {_existing(row)}: "
            "correct the setting that names it, such as --column (columns in TOML)"
        )


def _existing(row: Row) -> str:
    names = listed(row.columns)
    return f"the columns are {names}" if names else "the row is empty"
