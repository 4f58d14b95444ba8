"""Rows of relevance judgements (qrels), with a header as in BEIR or without one as in TREC."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tercet.data.delimited import sniff_delimiter
from tercet.data.rows import Row, read_rows
from tercet.errors import DataError
from tercet.settings.data import READER_COLUMNS
from tercet.settings.files import FileConfig, Format

PLAIN_FORMATS: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".txt": "tsv"}
"""Files that may lack a header, and their format if they have one."""

HEADERLESS = {4: (0, 2, 3), 3: (0, 1, 2)}
"""Positions of query, document and relevance by the number of columns: TREC has an unused second one."""

TREC_MARKS = ("0", "Q0")
"""Usual values of TREC's unused column."""


def read_qrels(path: Path, file: FileConfig) -> Iterator[Row]:
    """The judgements in a file; those without a header get the default column names."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in PLAIN_FORMATS:
        return read_rows(path, file)
    lines = read_rows(path, replace(file, format="text"))
    first = next(lines, None)
    if first is None:
        return iter(())
    line = first.columns["text"]
    delimiter = file.delimiter or (sniff_delimiter([line]) if suffix == ".csv" else "")
    fields = _fields(first, delimiter)
    if _is_header(fields):
        return read_rows(path, replace(file, format=PLAIN_FORMATS[suffix]))
    return _headerless(chain([first], lines), delimiter=delimiter, columns=len(fields))


def _fields(row: Row, delimiter: str) -> list[str]:
    """The fields of a line; without a delimiter it is split at tabs, or at white space if it has no tab."""
    line = row.columns["text"].strip()
    if delimiter:
        try:
            return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]
        except csv.Error as error:
            raise DataError(f"{row.location}: {error}") from None
    return [field.strip() for field in line.split("\t")] if "\t" in line else line.split()


def _is_header(fields: list[str]) -> bool:
    """Whether a line cannot be a judgement: its last column is not a number, and it is not like TREC."""
    if len(fields) not in HEADERLESS:
        return True
    if len(fields) == max(HEADERLESS) and fields[1] in TREC_MARKS:
        return False
    try:
        float(fields[-1])
    except ValueError:
        return True
    return False


def _headerless(lines: Iterator[Row], *, delimiter: str, columns: int) -> Iterator[Row]:
    names = READER_COLUMNS["retrieval"]
    roles = [str(names[role]) for role in ("query_id", "document_id", "relevance")]
    for line in lines:
        fields = _fields(line, delimiter)
        if len(fields) != columns:
            raise DataError(
                f"{line.location}: a judgement must have {columns} columns like the first line, "
                f"got {len(fields)}"
            )
        values = (fields[position] for position in HEADERLESS[columns])
        yield Row(line.location, dict(zip(roles, values, strict=True)))
