"""Parquet files to rows of the types that JSON has."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tercet.data.delimited import check_column_names
from tercet.errors import DataError
from tercet.extras import require
from tercet.settings.limits import current_limits, raise_it

BATCH_ROWS = 256
"""Rows that are decoded at a time; long texts are held as often as there are rows in a batch."""


def parquet_rows(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The number and the columns of each row.

    Dates and times become strings, durations numbers of seconds, decimals numbers, and bytes strings if they
    are UTF-8.
    """
    arrow = require("pyarrow", extra="parquet", purpose="reading Parquet")
    require("pyarrow.compute", extra="parquet", purpose="reading Parquet")
    opened = _open(name)
    names = opened.schema_arrow.names
    for field in opened.schema_arrow:
        _check_fields(arrow, name, field.type)
    number = 0
    try:
        for batch in opened.iter_batches(batch_size=BATCH_ROWS):
            columns = [
                _values(arrow, column, f"{name}, rows from {number}, column {column_name!r}")
                for column_name, column in zip(names, batch.columns, strict=True)
            ]
            for values in zip(*columns, strict=True):
                yield f"row {number}", dict(zip(names, values, strict=True))
                number += 1
    except (OSError, arrow.ArrowException) as error:
        raise _incomplete(name, error) from None


def _open(name: str) -> Any:
    """The Parquet file, whose columns have different names and whose size is within the limits."""
    arrow = require("pyarrow", extra="parquet", purpose="reading Parquet")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading Parquet")
    try:
        if not Path(name).is_file():
            raise DataError(f"there is no file {name}: Parquet is read from files only")
        with Path(name).open("rb"):  # pyarrow's error would not say that the permission is missing
            opened = parquet.ParquetFile(name)
        check_column_names(name, opened.schema_arrow.names)
    except PermissionError:
        raise DataError(f"no permission to read {name}: change it (chmod u+r), or copy the file") from None
    except (OSError, ValueError, arrow.ArrowException) as error:
        if isinstance(error, DataError):
            raise
        raise _incomplete(name, error) from None
    groups = (opened.metadata.row_group(position) for position in range(opened.metadata.num_row_groups))
    allowed = current_limits().max_unpacked_bytes
    if sum(group.total_byte_size for group in groups) > allowed:
        raise DataError(
            f"{name} has more than {allowed:,} bytes after decompression: {raise_it('max_unpacked_bytes')}"
        )
    return opened


def _incomplete(name: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())
    return DataError(f"{name} is not a complete Parquet file: {reason}: write it again")


def _check_fields(arrow: Any, location: str, kind: Any) -> None:
    """Raise if a struct within a column has two fields of the same name."""
    if arrow.types.is_struct(kind):
        check_column_names(location, [kind.field(position).name for position in range(kind.num_fields)])
    for position in range(kind.num_fields):
        _check_fields(arrow, location, kind.field(position).type)


def _values(arrow: Any, column: Any, location: str) -> list[Any]:
    """The values of a column as JSON has them; bytes that are not UTF-8 stay bytes."""
    try:
        values = _listed(arrow, column)
    except (ArithmeticError, ValueError, arrow.ArrowException) as error:
        raise DataError(
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
