"""Digests of the rows of a table: of their values, the types of these, and their lengths."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

COLUMNS = {
    "metadata": {"name": "TEXT", "value": "TEXT"},
    "candidates": {"number": "INTEGER", "id": "TEXT", "text": "TEXT", "metadata": "TEXT"},
    "segments": {"name": "TEXT", "manifest_digest": "TEXT"},
    "buffered": {"number": "INTEGER", "vector": "BLOB"},
    "chunks": {"number": "INTEGER", "candidate": "INTEGER", "start": "INTEGER", "stop": "INTEGER"},
}
"""The columns that the digest of a row covers, and their types, by table."""

TYPES = {table: " ".join(columns.values()).lower() for table, columns in COLUMNS.items()}
"""The types of the values of a row, as ``digest_sql`` joins them."""


def with_digests(table: str, rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """New rows of a table, each followed by its digest."""
    types = TYPES[table]
    return [(*row, row_digest(types, *map(_as_bytes, row))) for row in rows]


def digest_sql(table: str) -> str:
    """The SQL expression of the digest that a row of a table should have."""
    types = " || ' ' || ".join(f"typeof({name})" for name in COLUMNS[table])
    return f"row_digest({types}, {', '.join(f'CAST({name} AS BLOB)' for name in COLUMNS[table])})"


def row_digest(types: str, *values: bytes | None) -> int:
    """The SQL function of the same name: 64 bits, as a signed integer."""
    filled = [value or b"" for value in values]
    lengths = " ".join([str(len(value)) for value in filled])
    digest = blake2b(b"".join([f"{types} {lengths} ".encode(), *filled]), digest_size=8)
    return int.from_bytes(digest.digest(), "little", signed=True)


def _as_bytes(value: Any) -> bytes:
    """What SQLite's ``CAST(value AS BLOB)`` makes of a value."""
    return value if isinstance(value, bytes) else str(value).encode()
