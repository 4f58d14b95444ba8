"""Databases that hold an index: one package each, behind the interface ``CandidateStore``.

A new database is an entry of ``BACKENDS`` and a class with ``open`` and ``create``, as ``PostgresStore`` has.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tercet.extras import require
from tercet.index.backends.address import SCHEMES, Address
from tercet.index.protocol import CandidateStore
from tercet.settings.index import Storage

__all__ = ["BACKENDS", "SCHEMES", "WITH_WORDS"]


WITH_WORDS = ("postgresql", "postgres")
"""The schemes of the databases that can search words."""


class Backend(Protocol):
    """How a database opens and creates indexes."""

    def open(self, address: Address) -> CandidateStore:
        """The index at an address, which must exist."""

    def exists(self, address: Address) -> bool:
        """Whether there is an index at an address, and not only tables that were never used."""

    def migration(
        self, address: Address, width: int, *, storage: Storage, lexical: bool, chunked: bool
    ) -> str:
        """What creates the tables of an index, for a person who runs it."""

    def create(
        self,
        address: Address,
        width: int,
        *,
        storage: Storage = "float32",
        lexical: bool = True,
        chunked: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> CandidateStore:
        """An empty index at an address where there is none yet."""


def _postgres() -> Backend:
    require("psycopg", extra="pgvector", purpose="an index in PostgreSQL")
    from tercet.index.backends.postgres.store import PostgresStore

    return PostgresStore


def _qdrant() -> Backend:
    require("qdrant_client", extra="qdrant", purpose="an index in Qdrant")
    from tercet.index.backends.qdrant import QdrantStore

    return QdrantStore


BACKENDS: dict[str, Callable[[], Backend]] = {
    "postgresql": _postgres,
    "postgres": _postgres,
    "qdrant": _qdrant,
}
"""What loads the backend of the addresses that start with a scheme."""
