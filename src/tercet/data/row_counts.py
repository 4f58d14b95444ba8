"""The number of rows of a file before it is read, where counting takes far less time than encoding."""

from pathlib import Path

from tercet.data.rows import count_rows, is_regular_file, read_rows
from tercet.errors import TercetError
from tercet.extras import require
from tercet.settings.files import FileConfig

MAX_BYTES, MAX_GZIP_BYTES = 1 << 28, 1 << 26
"""Larger files are counted only if each line is a row."""


def quick_count(path: str, file: FileConfig | None = None) -> int | None:
    """The number of rows of a regular file; None for standard input, very large and unreadable files."""
    if not is_regular_file(path):
        return None
    try:
        lines = count_rows(path, file)
        if lines is not None:
            return lines
        if path.endswith(".parquet"):
            return _parquet_rows(path)
        if Path(path).stat().st_size > (MAX_GZIP_BYTES if path.endswith(".gz") else MAX_BYTES):
            return None
        return sum(1 for _ in read_rows(path, file))
    except (TercetError, OSError, ValueError):
        return None  # reading the rows reports what is wrong


def _parquet_rows(path: str) -> int:
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading Parquet")
    rows: int = parquet.read_metadata(path).num_rows
    return rows
