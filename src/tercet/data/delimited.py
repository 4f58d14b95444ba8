"""CSV and TSV: lines to rows of cells."""

import csv
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tercet.data.decoding import Lines
from tercet.errors import DataError
from tercet.inputs import listed

DELIMITERS = (",", ";", "\t", "|")
"""Delimiters that are recognized, the most frequent first."""

SAMPLE_LINES = 30
"""Lines that are read to recognize the delimiter."""

MAX_CELL = 1 << 30
"""Characters of a CSV cell. Python's default of 131,072 is too small for documents."""

Cells = Iterator[tuple[str, dict[str, Any]]]


def csv_rows(name: str, lines: Lines, delimiter: str = "") -> Cells:
    """The line and the cells of each row; cells may be quoted.

    Args:
        name: how errors call the file.
        delimiter: default: the one that fits the first lines.
    """
    csv.field_size_limit(MAX_CELL)
    texts = (line + "\n" for _, line in lines)
    if not delimiter:
        first = list(islice(texts, SAMPLE_LINES))
        delimiter = sniff_delimiter(first)
        texts = (line for part in (first, texts) for line in part)
    return _table(name, csv.reader(texts, delimiter=delimiter, strict=True))


def tsv_rows(name: str, lines: Lines, delimiter: str = "") -> Cells:
    """As ``csv_rows``, with tabs and without quotes."""
    csv.field_size_limit(MAX_CELL)
    texts = (line + "\n" for _, line in lines)
    return _table(name, csv.reader(texts, delimiter=delimiter or "\t", quoting=csv.QUOTE_NONE))


def sniff_delimiter(lines: list[str]) -> str:
    """The delimiter that splits the most of these lines into as many cells as the header.

    A delimiter that is not in the header is never chosen, so a file with one column has the default, a comma.
    """
    fits = {delimiter: _fit(lines, delimiter) for delimiter in DELIMITERS}
    return max(DELIMITERS, key=lambda delimiter: fits[delimiter])  # the first of equal ones


def _fit(lines: list[str], delimiter: str) -> tuple[int, int]:
    """How many rows have as many cells as the header, and how many cells that is; zeros for one cell."""
    try:
        sizes = [len(cells) for cells in csv.reader(lines, delimiter=delimiter) if cells]
    except csv.Error:
        return 0, 0
    if len(lines) == SAMPLE_LINES and len(sizes) > 2:
        sizes.pop()  # the sample may end within a quoted cell
    if not sizes or sizes[0] < 2:
        return 0, 0
    return sizes.count(sizes[0]), sizes[0]


def _table(name: str, reader: Any) -> Cells:
    header: list[str] | None = None
    start = 1
    try:
        for cells in reader:
            place = f"line {start}"
            start = reader.line_num + 1
            if not cells:
                continue
            if header is None:
                header = _header(f"{name}, {place}", cells)
            elif len(cells) != len(header):
                raise DataError(_wrong_size(f"{name}, {place}", len(header), len(cells)))
            else:
                yield place, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"{name}, line {start}: {error}") from None


def _header(location: str, names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise DataError(f"{location}: two columns have the same name: {listed(names)}")
    return names


def _wrong_size(location: str, wanted: int, got: int) -> str:
    advice = "quote cells that contain the delimiter, or give another --delimiter (delimiter in TOML)"
    cells = "1 cell" if got == 1 else f"{got} cells"
    return f"{location}: the row has {cells}, the header has {wanted}: {advice}"
