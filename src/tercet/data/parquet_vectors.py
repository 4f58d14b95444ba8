"""The column of a Parquet file that holds vectors, in batches, without a Python object per number."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tercet.data.parquet_rows import ParquetColumn, incomplete, open_parquet_file
from tercet.errors import DataError
from tercet.extras import require
from tercet.records import Floats


def parquet_vectors(name: str, column: str) -> Iterator[Floats]:
    """``[n, D]``: the vectors of a file, in batches of at most 256 rows; all have the same width."""
    arrow = require("pyarrow", extra="parquet", purpose="reading Parquet")
    opened = open_parquet_file(name)
    if column not in opened.schema_arrow.names:
        raise DataError(
            f"{name} has no column {column!r}, only {', '.join(map(repr, opened.schema_arrow.names))}: "
            "name the "
            "column with the vectors (--vector-column)"
        )
    first, width = 0, None
    rows = ParquetColumn(name, opened, column).batch_rows()
    try:
        for batch in opened.iter_batches(columns=[column], batch_size=rows):
            vectors = _matrix(arrow, batch.column(0), f"{name}, rows from {first}, column {column!r}")
            if width is not None and vectors.shape[1] != width:
                raise DataError(
                    f"{name}, rows from {first}: vectors must have {width} numbers, got {vectors.shape[1]}"
                )
            first, width = first + len(vectors), vectors.shape[1]
            yield vectors
    except (OSError, arrow.ArrowException) as error:
        raise incomplete(name, error) from None


def _matrix(arrow: Any, column: Any, location: str) -> Floats:
    """The lists of numbers of a column as the rows of a matrix."""
    types, kind = arrow.types, column.type
    is_list = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    if not is_list or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise DataError(f"{location} must have lists of numbers, got {kind}")
    values = column.flatten()
    if column.null_count or values.null_count:
        raise DataError(f"{location}: a vector or a number is missing: encode these candidates again")
    width = len(values) // max(len(column), 1)
    if not types.is_fixed_size_list(kind):
        lengths = np.diff(column.offsets.to_numpy())
        if (lengths != lengths[0]).any():
            raise DataError(
                f"{location}: vectors must have one width, got {lengths.min()} to {lengths.max()}"
            )
    numbers = values.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, which is refused later
        return np.ascontiguousarray(numbers, dtype=np.float32).reshape(len(column), width)
