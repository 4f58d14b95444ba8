"""The sizes of the pages of a Parquet file, from their headers, which are read without decoding a page.

A page is decompressed as a whole, and none of its values is longer than it is. The headers are structs of
Thrift's compact protocol.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

UNPACKED_SIZE, PACKED_SIZE, VALUES = 2, 3, 1
"""Fields of a page header, and of the header of its kind within it."""
DATA_PAGE, DATA_PAGE_V2 = 5, 8
"""Fields of a page header with a header for pages of data."""
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
WHOLE_NUMBERS = (4, 5, 6)
"""Types of fields."""
MAX_DEPTH, MAX_VARINT_BYTES = 8, 10


class PageHeaderError(ValueError):
    """A page does not begin with a header."""


def page_sizes(file: BinaryIO, chunk: Any) -> Iterator[int]:
    """The bytes of each page of a column chunk after decompression."""
    position, values = _start(chunk), 0
    end = position + chunk.total_compressed_size
    while position < end and values < chunk.num_values:
        file.seek(position)
        header = _struct(file, depth=0)
        packed, unpacked = header.get(PACKED_SIZE, -1), header.get(UNPACKED_SIZE, -1)
        if not isinstance(packed, int) or not isinstance(unpacked, int) or min(packed, unpacked) < 0:
            raise PageHeaderError(f"the page at byte {position:,} has no valid size")
        values += _values(header)
        position = file.tell() + packed
        yield unpacked


def _start(chunk: Any) -> int:
    """The position of the first page, as Arrow finds it."""
    first = int(chunk.data_page_offset)
    dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return min(first, dictionary) if dictionary else first


def _values(header: dict[int, Any]) -> int:
    """The number of values of a page; 0 for a dictionary."""
    kinds = [header.get(field) for field in (DATA_PAGE, DATA_PAGE_V2)]
    counts = [kind.get(VALUES) for kind in kinds if isinstance(kind, dict)]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


def _struct(file: BinaryIO, *, depth: int) -> dict[int, Any]:
    """The fields of a struct by their numbers."""
    fields, number = dict[int, Any](), 0
    while kind := _byte(file):
        step, kind = kind >> 4, kind & 0x0F
        number = number + step if step else _signed(file)
        fields[number] = kind == TRUE if kind in (TRUE, FALSE) else _value(file, kind, depth=depth)
    return fields


def _value(file: BinaryIO, kind: int, *, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise PageHeaderError("a page header has too many structs inside each other")
    if kind in WHOLE_NUMBERS:
        return _signed(file)
    if kind in (TRUE, FALSE, BYTE):
        return _byte(file)
    if kind == DOUBLE:
        return [_byte(file) for _ in range(8)]
    if kind == BINARY:
        return file.seek(_varint(file), 1)
    if kind in (LIST, SET):
        return _list(file, depth=depth + 1)
    if kind == STRUCT:
        return _struct(file, depth=depth + 1)
    raise PageHeaderError(f"a page header has a field of type {kind}")


def _list(file: BinaryIO, *, depth: int) -> None:
    """Skip a list, whose values are of no interest."""
    first = _byte(file)
    count = first >> 4 if first >> 4 < 15 else _varint(file)
    for _ in range(count):
        _value(file, first & 0x0F, depth=depth)


def _signed(file: BinaryIO) -> int:
    """A number in zigzag code: 0, -1, 1, -2, …"""
    number = _varint(file)
    return (number >> 1) ^ -(number & 1)


def _varint(file: BinaryIO) -> int:
    number = 0
    for position in range(MAX_VARINT_BYTES):
        byte = _byte(file)
        number |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return number
    raise PageHeaderError("a number in a page header has too many bytes")


def _byte(file: BinaryIO) -> int:
    read = file.read(1)
    if not read:
        raise PageHeaderError("a page header is incomplete")
    return read[0]
