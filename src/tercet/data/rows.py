"""Rows of text, JSONL, JSON, CSV, TSV and Parquet files, each with its file and line."""

import gzip
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.data.decoding import Lines, is_wide, marked_encoding, numbered_lines
from tercet.data.delimited import csv_rows, tsv_rows
from tercet.data.json_rows import json_array_rows, json_line_rows
from tercet.errors import DataError
from tercet.extras import require
from tercet.settings.files import FORMATS, FileConfig, Format

STDIN = "-"
"""The name of standard input."""

SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tsv": "tsv",
    ".txt": "text",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of a row, and its location: the file and the line.

    Lines are counted from 1; rows of Parquet files and elements of JSON arrays from 0. ``untyped`` is true if
    all values are strings because the format has no other type, as in CSV.
    """

    location: str
    columns: dict[str, Any]
    untyped: bool = False


def read_rows(source: str | Path, file: FileConfig | None = None) -> Iterator[Row]:
    """The rows of a file or of standard input (``-``); plain text has one column, ``text``.

    Args:
        source: a path; files that end in ``.gz`` are decompressed. Blank lines are skipped.
    """
    name, config = str(source), file or FileConfig()
    kind = config.format or _guess(name)
    if kind == "parquet":
        yield from _parquet(name)
        return
    shown = "standard input" if name == STDIN else name
    with _opened(name) as opened:
        lines = numbered_lines(shown, opened, config.encoding)
        for place, columns in _parsed(kind, shown, lines, config.delimiter):
            yield Row(f"{shown}, {place}", columns, kind in ("csv", "tsv"))


def count_rows(source: str | Path, file: FileConfig | None = None) -> int | None:
    """The number of rows, if it is the number of lines; None for other formats and standard input."""
    name, config = str(source), file or FileConfig()
    if name == STDIN or name.endswith(".gz") or not Path(name).is_file():
        return None
    if (config.format or _guess(name)) not in ("text", "jsonl"):
        return None
    with Path(name).open("rb") as opened:
        if is_wide(config.encoding or marked_encoding(opened.readline()) or "utf-8"):
            return None
        opened.seek(0)
        return sum(1 for line in opened if line.strip())


def is_regular_file(source: str) -> bool:
    """Whether a source is a file that can be read twice, unlike standard input and pipes."""
    return source != STDIN and Path(source).is_file()


def _parsed(kind: Format, name: str, lines: Lines, delimiter: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The line and the columns of each row."""
    if kind == "csv":
        return csv_rows(name, lines, delimiter)
    if kind == "tsv":
        return tsv_rows(name, lines, delimiter)
    if kind == "json":
        return json_array_rows(name, lines)
    if kind == "jsonl":
        return json_line_rows(name, lines)
    return ((f"line {number}", {"text": line}) for number, line in lines if line.strip())


def _guess(name: str) -> Format:
    if name == STDIN:
        return "text"
    if Path(name).is_dir():
        raise DataError(f"{name} is a folder: give a file")
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"the format of {name} is unknown: use a suffix ({', '.join(SUFFIXES)}, each also with .gz), or "
            f"give the format ({', '.join(FORMATS)})"
        )
    return SUFFIXES[suffix]


@contextmanager
def _opened(name: str) -> Iterator[Iterable[bytes]]:
    if name == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with gzip.GzipFile(name) if name.endswith(".gz") else Path(name).open("rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"there is no file {name}") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a folder: give a file") from None
    except PermissionError:
        raise DataError(f"no permission to read {name}") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{name} is not a complete gzip file: {error}") from None


def _parquet(name: str) -> Iterator[Row]:
    if not Path(name).is_file():
        raise DataError(f"there is no file {name}: Parquet is read from files only")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading Parquet")
    number = 0
    try:
        for batch in parquet.ParquetFile(name).iter_batches():
            for columns in batch.to_pylist():
                yield Row(f"{name}, row {number}", columns)
                number += 1
    except (OSError, ValueError) as error:
        raise DataError(f"{name} is not a complete Parquet file: {error}") from None
