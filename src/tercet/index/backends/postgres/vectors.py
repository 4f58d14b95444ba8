"""Vectors in the binary form of pgvector, so that no number is written as text."""

from typing import Any

import numpy as np
import psycopg
from psycopg.adapt import Dumper
from psycopg.types import TypeInfo

from tercet.errors import DatabaseError, InputError
from tercet.records import Floats

HEADER = np.dtype([("width", ">i2"), ("unused", ">i2")])
NUMBERS = {"vector": ">f4", "halfvec": ">f2"}
LARGEST_HALF = 65504.0


def row_type(kind: str, width: int) -> np.dtype[Any]:
    """The bytes of one vector of a type of pgvector."""
    return np.dtype([("header", HEADER), ("numbers", NUMBERS[kind], (width,))])


def encoded(kind: str, vectors: Floats) -> list[bytes]:
    """Vectors ``[C, D]`` as values of a column."""
    width = vectors.shape[1]
    rows = np.zeros(len(vectors), dtype=row_type(kind, width))
    rows["header"]["width"], rows["numbers"] = width, vectors
    return [row.tobytes() for row in rows]


def decoded(kind: str, values: list[bytes], width: int) -> Floats:
    """``[C, D]``: the vectors of values of a column."""
    rows = np.frombuffer(b"".join(values), dtype=row_type(kind, width))
    return np.ascontiguousarray(rows["numbers"], dtype=np.float32).reshape(len(values), width)


def fitted(kind: str, vectors: Floats) -> Floats:
    """The vectors, if the column can hold their numbers."""
    if kind == "halfvec" and vectors.size and np.abs(vectors).max() > LARGEST_HALF:
        raise InputError(
            f"float16 holds numbers up to {LARGEST_HALF:,.0f}, got {np.abs(vectors).max():.3g}: build the "
            "index with float32"
        )
    return vectors


class BinaryParameter:
    """A value in the binary form of its type."""

    def __init__(self, data: bytes, oid: int) -> None:
        self.data, self.oid = data, oid


class BinaryDumper(Dumper):
    """Sends a ``BinaryParameter`` as it is."""

    format = psycopg.pq.Format.BINARY

    def dump(self, obj: BinaryParameter) -> bytes:
        """The bytes."""
        return obj.data

    def get_key(self, obj: BinaryParameter, format: Any) -> Any:  # noqa: A002 - psycopg's name
        """A dumper is for one type of PostgreSQL."""
        return self.cls, obj.oid

    def upgrade(self, obj: BinaryParameter, format: Any) -> Dumper:  # noqa: A002 - psycopg's name
        """The dumper for the type of the value."""
        dumper = BinaryDumper(self.cls)
        dumper.oid = obj.oid
        return dumper


def array_parameter(connection: psycopg.Connection[Any], kind: str, vectors: Floats) -> BinaryParameter:
    """Vectors ``[C, D]`` as one parameter, an array of the type."""
    info = connection.adapters.types.get(kind) or _fetched(connection, kind)
    row = row_type(kind, vectors.shape[1])
    rows = np.zeros(len(vectors), dtype=[("length", ">i4"), ("row", row)])
    rows["length"] = row.itemsize
    rows["row"]["header"]["width"], rows["row"]["numbers"] = vectors.shape[1], vectors
    header = np.array([1, 0, info.oid, len(vectors), 1], dtype=">i4")  # one dimension, no nulls, from 1
    return BinaryParameter(header.tobytes() + rows.tobytes(), info.array_oid)


def _fetched(connection: psycopg.Connection[Any], kind: str) -> TypeInfo:
    """The type of an extension, which has another number in each database."""
    info = TypeInfo.fetch(connection, kind)
    if info is None:
        raise DatabaseError(f"the database has no type {kind}: CREATE EXTENSION vector")
    connection.adapters.types.add(info)
    return info
