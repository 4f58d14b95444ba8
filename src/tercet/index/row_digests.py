"""Digests of the rows of a table: of their values, the types of these, and their lengths."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Any

COLUMNS = {
    "metadata": {"name": "TEXT", "value": "TEXT"},
    "candidates": {"number": "INTEGER", "id": "TEXT", "text": "TEXT", "metadata": "TEXT"},
    "segments": {"name": "TEXT", "manifest_digest": "TEXT"},
    "buffered": {"number": "INTEGER", "vector": "BLOB"},
    "chunks": {"number": "INTEGER", "candidate": "INTEGER", "start": "INTEGER", "stop": "INTEGER"},
}
"""The columns that the digest of a row covers, and their types, by table."""

LENGTHS = {count: Struct(f"<{count}q") for count in map(len, COLUMNS.values())}
"""The lengths of some values as bytes."""


def with_digests(table: str, rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """New rows of a table, each followed by its digest."""
    types = " ".join(COLUMNS[table].values()).lower()  # as ``digest_sql`` joins them
    return [
        (*row, row_digest(types, *[value if type(value) is bytes else str(value).encode() for value in row]))
        for row in rows
    ]


def digest_sql(table: str) -> str:
    """The SQL expression of the digest that a row of a table should have."""
    types = " || ' ' || ".join(f"typeof({name})" for name in COLUMNS[table])
    values = ", ".join(f"coalesce(CAST({name} AS BLOB), x'')" for name in COLUMNS[table])
    return f"row_digest({types}, {values})"


def row_digest(types: str, *values: bytes) -> int:
    """The SQL function of the same name: 64 bits, as a signed integer."""
    lengths = LENGTHS[len(values)].pack(*map(len, values))
    digest = blake2b(b"".join((types.encode(), lengths, *values)), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
