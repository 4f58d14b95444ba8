"""CSV and TSV: lines to rows of cells."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tercet.data.decoding import Lines
from tercet.errors import DataError
from tercet.inputs import listed
from tercet.settings.limits import current_limits, raise_it

DELIMITERS = (",", ";", "\t", "|")
"""Delimiters that are recognized, the most frequent first."""

SAMPLE_LINES = 30
"""Lines that are read to recognize the delimiter."""

SAMPLE_CHARACTERS = 1 << 20
"""Fewer lines are read if they have more characters than this."""

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
        first = _sample(texts)
        delimiter = sniff_delimiter(first)
        texts = (line for part in (first, texts) for line in part)
    limited = _RowLines(name, texts)
    return _table(name, limited, csv.reader(limited, delimiter=delimiter, strict=True))


def tsv_rows(name: str, lines: Lines, delimiter: str = "") -> Cells:
    """As ``csv_rows``, with tabs and without quotes."""
    csv.field_size_limit(MAX_CELL)
    limited = _RowLines(name, (line + "\n" for _, line in lines))
    return _table(name, limited, csv.reader(limited, delimiter=delimiter or "\t", quoting=csv.QUOTE_NONE))


class _RowLines:
    """Lines for the csv module, which may take many for one row; the length of a row is limited.

    Set ``length`` to 0 after each row.
    """

    def __init__(self, name: str, lines: Iterator[str]) -> None:
        self.length = 0
        self._name, self._lines, self._number = name, lines, 0
        self._allowed = current_limits().max_line_bytes

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._number += 1
        self.length += len(line)
        if self.length > self._allowed + 1:
            raise DataError(
                f"{self._name}, line {self._number}: a row has more than {self._allowed:,} bytes: look for a "
                f"quote that is not closed; {raise_it('max_line_bytes')}"
            )
        return line


def _sample(lines: Iterator[str]) -> list[str]:
    """The first lines, few enough and short enough to be kept."""
    first: list[str] = []
    for line in islice(lines, SAMPLE_LINES):
        first.append(line)
        if _is_cut(first):
            break
    return first


def _is_cut(lines: list[str]) -> bool:
    """Whether a sample may end before the file does."""
    return len(lines) == SAMPLE_LINES or sum(map(len, lines)) > SAMPLE_CHARACTERS


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
    if _is_cut(lines) and len(sizes) > 2:
        sizes.pop()  # the sample may end within a quoted cell
    if not sizes or sizes[0] < 2:
        return 0, 0
    return sizes.count(sizes[0]), sizes[0]


def _table(name: str, lines: _RowLines, reader: Any) -> Cells:
    header: list[str] | None = None
    start = 1
    try:
        for cells in reader:
            place = f"line {start}"
            start, lines.length = reader.line_num + 1, 0
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
    check_column_names(location, names)
    return names


def check_column_names(location: str, names: Sequence[str]) -> None:
    """Raise if two columns have the same name, or one is too long to be a name."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DataError(f"{location}: several columns have the same name: {listed(repeated)}: rename them")
    allowed = current_limits().max_key_characters
    if any(len(name) > allowed for name in names):
        raise DataError(
            f"{location}: the name of a column has more than {allowed:,} characters: check that the first "
            f"row is a header; {raise_it('max_key_characters')}"
        )


def _wrong_size(location: str, wanted: int, got: int) -> str:
    advice = "quote cells that contain the delimiter, or give another --delimiter (delimiter in TOML)"
    cells = "1 cell" if got == 1 else f"{got} cells"
    return f"{location}: the row has {cells}, the header has {wanted}: {advice}"
