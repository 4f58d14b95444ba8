"""Values of Arrow, as Parquet files have them, to the types that JSON has."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tercet.errors import DataError


class UnreadableColumnError(DataError):
    """A column of a file cannot be read, so that no row of the file can be used."""


def json_values(arrow: Any, column: Any, location: str) -> list[Any]:
    """The values of a column as JSON has them; bytes that are not UTF-8 stay bytes.

    Dates and times become strings, durations numbers of seconds, decimals numbers, and bytes strings if they
    are UTF-8.
    """
    try:
        values = _listed(arrow, column)
    except (ArithmeticError, ValueError, arrow.ArrowException) as error:
        raise UnreadableColumnError(
            f"{location}: values of type {column.type} cannot be read ({error}): write them as strings, or "
            "leave the column out"
        ) from None
    return [plain(value) for value in values]


def _listed(arrow: Any, column: Any) -> list[Any]:
    """The values of a column, with Arrow's strings for dates and times."""
    for change in (_known_zone, _readable):
        kind = _changed(arrow, column.type, change)
        if kind != column.type:
            options = arrow.compute.CastOptions(target_type=kind, allow_time_truncate=True)
            column = column.cast(options=options)
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(_changed(arrow, column.type, _bytes)).to_pylist()
    return values


def _changed(arrow: Any, kind: Any, change: Callable[[Any, Any], Any]) -> Any:
    """A type with ``change`` of the types within it."""
    types = arrow.types
    if types.is_dictionary(kind):
        return _changed(arrow, kind.value_type, change)
    if types.is_struct(kind):
        parts = [kind.field(position) for position in range(kind.num_fields)]
        return arrow.struct([part.with_type(_changed(arrow, part.type, change)) for part in parts])
    if types.is_map(kind):
        return arrow.map_(_changed(arrow, kind.key_type, change), _changed(arrow, kind.item_type, change))
    if types.is_fixed_size_list(kind):
        return arrow.list_(_changed(arrow, kind.value_type, change), kind.list_size)
    if types.is_large_list(kind):
        return arrow.large_list(_changed(arrow, kind.value_type, change))
    if types.is_list(kind):
        return arrow.list_(_changed(arrow, kind.value_type, change))
    return change(arrow, kind)


def _known_zone(arrow: Any, kind: Any) -> Any:
    """UTC instead of a time zone that this system does not know."""
    if not arrow.types.is_timestamp(kind) or kind.tz is None:
        return kind
    try:
        arrow.scalar(0, arrow.int64()).cast(kind).cast(arrow.string())
    except arrow.ArrowException:
        return arrow.timestamp(kind.unit, "UTC")
    return kind


def _readable(arrow: Any, kind: Any) -> Any:
    """Strings for dates and times, which Python has for few years and no nanoseconds."""
    types = arrow.types
    if types.is_duration(kind):
        return arrow.duration("us")
    return arrow.string() if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) else kind


def _bytes(arrow: Any, kind: Any) -> Any:
    is_text = arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
    return arrow.binary() if is_text else kind


def plain(value: Any) -> Any:
    """A value with numbers for decimals and durations, and strings for UTF-8 and other types."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return _decoded(value) if isinstance(value, bytes) else str(value)


def _decoded(value: bytes) -> str | bytes:
    """The text that bytes are in UTF-8: older programs write strings so; the bytes if they are not."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
