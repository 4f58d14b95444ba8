"""Rows of text, JSONL, JSON, CSV, TSV and Parquet files, each with its file and line."""

import gzip
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from tercet.data.decoding import Lines, is_wide, marked_encoding, numbered_lines, raw_lines
from tercet.data.delimited import csv_rows, tsv_rows
from tercet.data.json_rows import json_array_rows, json_line_rows
from tercet.data.parquet_rows import parquet_rows
from tercet.data.remote import is_url, open_url
from tercet.errors import DataError
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
    all values are strings because the format has no other type, as in CSV. A column of a Parquet file is
    decoded when it is used.
    """

    location: str
    columns: Mapping[str, Any]
    untyped: bool = False


def read_rows(source: str | Path, file: FileConfig | None = None) -> Iterator[Row]:
    """The rows of a file or of standard input (``-``); plain text has one column, ``text``.

    Args:
        source: a path; files that end in ``.gz`` are decompressed. Blank lines are skipped.
    """
    name, config = str(source), file or FileConfig()
    kind = config.format or _guess(name)
    if kind == "parquet":
        for place, columns in parquet_rows(name):
            yield Row(f"{name}, {place}", columns)
        return
    shown = "standard input" if name == STDIN else name
    with _opened(name) as opened:
        raw = raw_lines(shown, opened, compressed=name.endswith(".gz"))
        lines = numbered_lines(shown, raw, config.encoding)
        for place, columns in _parsed(kind, shown, lines, config.delimiter):
            yield Row(f"{shown}, {place}", columns, kind in ("csv", "tsv"))


def count_rows(source: str | Path, file: FileConfig | None = None) -> int | None:
    """The number of rows, if it is the number of lines; None for other formats and standard input."""
    name, config = str(source), file or FileConfig()
    if name.endswith(".gz") or not is_regular_file(name):
        return None
    if (config.format or _guess(name)) not in ("text", "jsonl"):
        return None
    with _opened(name) as opened:
        if is_wide(config.encoding or marked_encoding(opened.read(4)) or "utf-8"):
            return None
        opened.seek(0)
        return sum(1 for line in raw_lines(name, opened) if line.strip())


def is_regular_file(source: str) -> bool:
    """Whether a source is a file that can be read twice, unlike standard input and pipes."""
    try:
        return source != STDIN and Path(source).is_file()
    except OSError:  # such as a name that is too long
        return False


def _parsed(kind: Format, name: str, lines: Lines, delimiter: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
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
    if _is_folder(Path(name)):
        raise DataError(f"{name} is a folder: give a file")
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"the format of {name} is unknown: use a suffix ({', '.join(SUFFIXES)}, each also with .gz), or "
            f"give the format ({', '.join(FORMATS)})"
        )
    return SUFFIXES[suffix]


def _is_folder(path: Path) -> bool:
    """Whether there is a folder at a path."""
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long
        return False


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == STDIN:
        yield sys.stdin.buffer
        return
    if "\0" in name:
        raise DataError(f"the name of a file must not contain a zero byte, got {name!r}")
    try:
        with open_url(name) if is_url(name) else Path(name).open("rb") as file:
            yield cast("BinaryIO", gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file)
    except FileNotFoundError:
        raise DataError(f"there is no file {name}: check the name") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a folder: give a file") from None
    except PermissionError:
        raise DataError(f"no permission to read {name}: change it (chmod u+r), or copy the file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{name} is not a complete gzip file ({error}): copy or compress it again, or rename it if it is "
            "not compressed"
        ) from None
    except OSError as error:
        raise DataError(
            f"cannot read {name}: {error.strerror or error}: check the name and the disk"
        ) from None
