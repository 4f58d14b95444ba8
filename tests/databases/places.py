"""Places for an index: a new folder, or a new name in each database. A new database joins by one line."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from tercet.retrieve import Retriever
from tests.databases.servers import PostgresServer

NUMBERS = count()
KINDS = ("folder", "postgres", "qdrant")
ALL = [pytest.param(kind, marks=[] if kind == "folder" else pytest.mark.slow) for kind in KINDS]
"""Parameters of a fixture: the folder in quick tests too, the databases in slow ones."""
DATABASES = [pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:]]


class Places:
    """New places for indexes of each kind; servers start when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[str, PostgresServer] = {}

    def new(self, kind: str) -> str:
        """A folder or an address where nothing is yet."""
        name = f"index_{next(NUMBERS)}"
        if kind == "folder":
            return str(self._folder / f"{name}.tercet")
        if kind == "qdrant":  # without a server, which no package has
            pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
            return f"qdrant://{self._folder / name}/{name}"
        return f"{self.server(kind).url}/{name}"

    def server(self, kind: str) -> PostgresServer:
        """The server of a kind of database."""
        if kind not in self._servers:
            self._servers[kind] = SERVERS[kind]()
        return self._servers[kind]

    def close(self) -> None:
        """Stop the servers."""
        for server in self._servers.values():
            server.close()


SERVERS: dict[str, Callable[[], Any]] = {"postgres": PostgresServer}


def open_places(folder: Path) -> Iterator[Places]:
    """The places of a test session."""
    places = Places(folder)
    yield places
    places.close()


class NewRetriever(Protocol):
    """Creates a retriever at a new place of one kind."""

    def __call__(self, scorer: Any, **options: Any) -> Retriever: ...


def needs_words(retriever: Retriever) -> None:
    """Skip the test if the database has no lexical search."""
    if not retriever.store.has_lexical:
        pytest.skip("this database has no lexical search")


def option(place: str) -> dict[str, str]:
    """The argument of ``Retriever`` that names a place."""
    return {"index" if "://" in place else "path": place}
