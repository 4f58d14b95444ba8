"""Rows of text, JSONL, CSV, TSV and Parquet files, one at a time, each knowing where it stands."""

import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tercet.errors import DataError
from tercet.extras import require
from tercet.inputs import check_choice

Format: TypeAlias = Literal["text", "jsonl", "csv", "tsv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

STDIN = "-"
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tsv": "tsv",
    ".txt": "text",
}
LONGEST_FIELD = 1 << 30
"""Of a CSV file, in characters; Python's own limit of 131,072 is too small for a document."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row's columns, and where it stands: the file and the line."""

    where: str
    columns: dict[str, Any]


def read_rows(source: str | Path, file_format: Format | None = None) -> Iterator[Row]:
    """The rows of a file, or of standard input (``-``); a plain text file has one column, ``text``.

    Args:
        source: a path; ``.gz`` in its name is unpacked on the way.
        file_format: guessed from the name where it is not given; standard input is text.
    """
    name = str(source)
    if file_format is not None:
        check_choice("format", file_format, FORMATS)
    kind = file_format or _guess(name)
    if kind == "parquet":
        yield from _parquet(name)
        return
    called = "standard input" if name == STDIN else name
    with _opened(name) as file:
        yield from _PARSERS[kind](called, _lines(called, file))


def count_rows(source: str | Path, file_format: Format | None = None) -> int | None:
    """How many rows a file has, where counting its lines is enough to tell; None elsewhere."""
    name = str(source)
    if name == STDIN or name.endswith(".gz") or not Path(name).is_file():
        return None
    if (file_format or _guess(name)) not in ("text", "jsonl"):
        return None
    with Path(name).open("rb") as file:
        return sum(1 for _ in file)


def _guess(name: str) -> Format:
    if name == STDIN:
        return "text"
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{name} has no ending that names its format ({', '.join(SUFFIXES)}, each also with .gz): "
            f"say which of {', '.join(FORMATS)} it is"
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
        raise DataError(f"{name} is a folder, a file was expected") from None
    except PermissionError:
        raise DataError(f"{name} may not be read by this user") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{name} is no whole gzip file: {error}") from None


def _lines(name: str, file: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends."""
    for number, raw in enumerate(file, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}, line {number}: byte {error.start + 1} is not UTF-8: convert the file first"
            ) from None
        yield number, line.removesuffix("\n").removesuffix("\r")


def _text(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    for number, line in lines:
        yield Row(f"{name}, line {number}", {"text": line})


def _jsonl(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    for number, line in lines:
        where = f"{name}, line {number}"
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (RecursionError, ValueError) as error:
            raise DataError(f"{where}: not JSON ({error})") from None
        if isinstance(value, str):
            value = {"text": value}
        if not isinstance(value, dict):
            raise DataError(f"{where}: a JSON object or string was expected, got {type(value).__name__}")
        yield Row(where, value)


def _csv(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_FIELD)
    return _table(name, csv.reader((line + "\n" for _, line in lines), strict=True))


def _tsv(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_FIELD)
    plain = csv.reader((line + "\n" for _, line in lines), delimiter="\t", quoting=csv.QUOTE_NONE)
    return _table(name, plain)


def _table(name: str, reader: Any) -> Iterator[Row]:
    header: list[str] | None = None
    start = 1
    try:
        for fields in reader:
            where = f"{name}, line {start}"
            start = reader.line_num + 1
            if not fields:
                continue
            if header is None:
                header = fields
                if len(set(header)) < len(header):
                    raise DataError(
                        f"{where}: two columns have the same name: {', '.join(map(repr, header))}"
                    )
            elif len(fields) != len(header):
                raise DataError(f"{where}: {len(header)} columns were expected, got {len(fields)}")
            else:
                yield Row(where, dict(zip(header, fields, strict=True)))
    except csv.Error as error:
        raise DataError(f"{name}, line {start}: {error}") from None


def _parquet(name: str) -> Iterator[Row]:
    if not Path(name).is_file():
        raise DataError(f"there is no file {name}; Parquet is read from files only")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading Parquet")
    number = 0
    try:
        for batch in parquet.ParquetFile(name).iter_batches():
            for columns in batch.to_pylist():
                number += 1
                yield Row(f"{name}, row {number}", columns)
    except (OSError, ValueError) as error:
        raise DataError(f"{name} is no whole Parquet file: {error}") from None


_PARSERS: dict[Format, Callable[[str, Iterator[tuple[int, str]]], Iterator[Row]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "text": _text,
    "tsv": _tsv,
}
