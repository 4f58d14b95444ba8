"""Parquet files to rows, column by column and only where a row's value is used."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tercet.data.delimited import check_column_names
from tercet.data.parquet_pages import PageHeaderError, page_sizes
from tercet.data.parquet_values import UnreadableColumnError, json_values
from tercet.data.remote import is_url, open_url
from tercet.errors import DataError
from tercet.extras import require
from tercet.settings.limits import current_limits, exceeds, raise_it

BATCH_ROWS = 256
"""Rows that are decoded at a time, fewer if they are long."""
REFERENCE_BYTES = 8
"""What a list of Python takes for each of its values at least."""


def parquet_rows(name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The number and the columns of each row; a column is decoded when its first value is used."""
    arrow = require("pyarrow", extra="parquet", purpose="reading Parquet")
    require("pyarrow.compute", extra="parquet", purpose="reading Parquet")
    opened = open_parquet_file(name)
    for field in opened.schema_arrow:
        _check_fields(arrow, name, field.type)
    columns = {column: ParquetColumn(name, opened, column) for column in opened.schema_arrow.names}
    for number in range(opened.metadata.num_rows if columns else 0):
        yield f"row {number}", ParquetRow(columns, number)


class ParquetRow(Mapping[str, Any]):
    """The columns of a row, whose values are read when they are used."""

    def __init__(self, columns: "Mapping[str, ParquetColumn]", number: int) -> None:
        self._columns = columns
        self._number = number

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._number]

    def __contains__(self, name: object) -> bool:  # that of Mapping would read the value
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class ParquetColumn:
    """The values of a column, of which one batch is held; rows are meant to be read in their order."""

    def __init__(self, file: str, opened: Any, column: str) -> None:
        self._file, self._opened, self._column = file, opened, column
        self._parts: Iterator[list[Any]] = iter(())
        self._start, self._values = 0, list[Any]()

    def __getitem__(self, row: int) -> Any:
        if row < self._start or not self._values:
            self._parts, self._start, self._values = self._read(), 0, []
        while row >= self._start + len(self._values):
            self._start += len(self._values)
            part = next(self._parts, None)
            if part is None:
                raise incomplete(self._file, f"row {self._start} is missing in {self._shown}")
            self._values = part
        return self._values[row - self._start]

    def _read(self) -> Iterator[list[Any]]:
        """The values of each batch, of which none is too large."""
        arrow = require("pyarrow", extra="parquet", purpose="reading Parquet")
        number = 0
        try:
            for batch in self._opened.iter_batches(columns=[self._column], batch_size=self.batch_rows()):
                for part in self._small_parts(arrow, batch.column(self._column), number):
                    yield json_values(arrow, part, f"{self._file}, rows from {number}, {self._shown}")
                    number += len(part)
        except (OSError, arrow.ArrowException) as error:
            raise incomplete(self._file, error) from None

    def batch_rows(self) -> int:
        """How many rows to decode at a time, so that they take little memory even if all are the longest.

        Raises if the footer or a page header says that a value is too large.
        """
        metadata, longest, largest_page = self._opened.metadata, 1, 0
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            chunks = [group.column(position) for position in range(group.num_columns)]
            own = [chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(f"{self._column}.")]
            total = sum(max(c.total_uncompressed_size, c.num_values * REFERENCE_BYTES) for c in own)
            longest = max(longest, total // max(group.num_rows, 1))  # on average: one is this long at least
            largest_page = max([largest_page, *map(self._largest_page, own)])
        self._check_size(longest, self._file)
        return max(1, min(BATCH_ROWS, current_limits().max_line_bytes // max(longest, largest_page)))

    def _largest_page(self, chunk: Any) -> int:
        """The bytes of the largest page of a chunk: no value is longer, but a value can be repeated often."""
        try:
            with _opened(self._file) as file:
                largest = max(page_sizes(file, chunk), default=0)
        except PageHeaderError as error:
            raise incomplete(self._file, error) from None
        if largest > current_limits().max_page_bytes:
            raise UnreadableColumnError(
                f"{self._file}: the number of bytes of a page of {self._shown} is "
                f"{exceeds('max_page_bytes', largest)}"
            )
        return largest

    def _small_parts(self, arrow: Any, column: Any, number: int) -> Iterator[Any]:
        """The batch, or its rows one by one if together they take much memory in Python."""
        if _size(arrow, column) <= current_limits().max_line_bytes:
            yield column
            return
        for position in range(len(column)):
            cell = column.slice(position, 1)
            if arrow.types.is_dictionary(cell.type):
                cell = cell.dictionary_decode()
            self._check_size(_size(arrow, cell), f"{self._file}, row {number + position}")
            yield cell

    def _check_size(self, size: int, location: str) -> None:
        if size > current_limits().max_line_bytes:
            raise UnreadableColumnError(
                f"{location}: the number of bytes of a value in {self._shown} is "
                f"{exceeds('max_line_bytes', size)}"
            )

    @property
    def _shown(self) -> str:
        return f"column {self._column!r}"


def _size(arrow: Any, column: Any) -> int:
    """The bytes of a column and of the references to its values in Python."""
    types, kind = arrow.types, column.type
    references = REFERENCE_BYTES * len(column)
    if not references:
        return 0
    if types.is_dictionary(kind):
        return references + _decoded_size(arrow, column)
    if types.is_struct(kind):
        return references + sum(_size(arrow, part) for part in column.flatten())
    if types.is_fixed_size_list(kind):
        return references + _size(arrow, column.flatten())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        start, end = (column.offsets[position].as_py() for position in (0, -1))
        return references + _size(arrow, column.values.slice(start, end - start))
    return references + int(column.nbytes)


def _decoded_size(arrow: Any, column: Any) -> int:
    """The bytes of a dictionary's values, each as often as it is used."""
    values = column.dictionary
    if not values.type.equals(arrow.string()) and not values.type.equals(arrow.large_string()):
        return len(column) * int(values.nbytes)  # at most
    lengths = arrow.compute.binary_length(values).take(column.indices)
    return arrow.compute.sum(lengths.cast(arrow.int64())).as_py() or 0


def open_parquet_file(name: str) -> Any:
    """The Parquet file, whose columns have different names and whose size is within the limits."""
    arrow = require("pyarrow", extra="parquet", purpose="reading Parquet")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading Parquet")
    try:
        if is_url(name):
            opened = parquet.ParquetFile(open_url(name))
        else:
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
        raise incomplete(name, error) from None
    groups = (opened.metadata.row_group(position) for position in range(opened.metadata.num_row_groups))
    allowed = current_limits().max_unpacked_bytes
    if sum(group.total_byte_size for group in groups) > allowed:
        raise DataError(
            f"{name} has more than {allowed:,} bytes after decompression: {raise_it('max_unpacked_bytes')}"
        )
    return opened


def _opened(name: str) -> BinaryIO:
    return open_url(name) if is_url(name) else Path(name).open("rb")


def incomplete(name: str, error: Exception | str) -> UnreadableColumnError:
    """The error about a file that is truncated or damaged."""
    reason = " ".join(str(error).split())
    return UnreadableColumnError(f"{name} is not a complete Parquet file: {reason}: write it again")


def _check_fields(arrow: Any, location: str, kind: Any) -> None:
    """Raise if a struct within a column has two fields of the same name."""
    if arrow.types.is_struct(kind):
        check_column_names(location, [kind.field(position).name for position in range(kind.num_fields)])
    for position in range(kind.num_fields):
        _check_fields(arrow, location, kind.field(position).type)
