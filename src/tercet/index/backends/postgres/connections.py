"""Connections to PostgreSQL: a few that are kept, new ones after a fault, and none that a fork copied."""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, TypeVar

import psycopg

from tercet.errors import DatabaseError
from tercet.index.backends.postgres.faults import LostConnectionError, is_starting, is_transient, translated
from tercet.index.backends.postgres.place import Place
from tercet.index.backends.postgres.vectors import BinaryDumper, BinaryParameter

T = TypeVar("T")

KEPT = 4
"""Connections that stay open between calls."""
ATTEMPTS = 7
"""How often a call is tried if the connection is lost: over about six seconds, as a restart takes."""
FIRST_PAUSE = 0.1
CONNECT_SECONDS = 10


class Connections:
    """Connections to one server. Threads share them; each call has one for itself."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = Lock()
        self._idle: list[psycopg.Connection[Any]] = []
        self._process = os.getpid()
        self._was_connected = False
        """Before the first connection, a fault is usually a wrong address, and no reason to try again."""

    def run(self, call: Callable[[psycopg.Connection[Any]], T], *, attempts: int = ATTEMPTS) -> T:
        """What ``call`` returns; it is called again if the connection is lost, so it must be repeatable."""
        with translated(self._place):
            for attempt in range(attempts):
                try:
                    with self._one() as connection:
                        return call(connection)
                except psycopg.Error as error:
                    again = is_transient(error) and (self._was_connected or is_starting(error))
                    if not again or attempt == attempts - 1:
                        raise
                    self.discard()
                time.sleep(FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.0))
        raise DatabaseError(f"{self._place.address}: no attempt was made")

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection in a transaction that only reads one state, and that no fault repeats."""
        with translated(self._place), self._one() as connection, reading_one_state(connection):
            yield connection

    def discard(self) -> None:
        """Close the connections that nobody uses: a fault of one is usually a fault of all."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(psycopg.Error, OSError):
                connection.close()

    @contextmanager
    def _one(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self._take() or self._connect()
        try:
            yield connection
        except psycopg.OperationalError as error:
            if connection.closed:
                raise LostConnectionError(*error.args) from error
            raise
        finally:
            self._give_back(connection)

    def _take(self) -> psycopg.Connection[Any] | None:
        with self._lock:
            if self._process != os.getpid():  # after a fork: the parent uses these sockets
                _leaked.extend(self._idle)
                self._idle, self._process = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        is_usable = not connection.closed and connection.info.transaction_status == idle
        with self._lock:
            if is_usable and len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        with suppress(psycopg.Error, OSError):
            connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        options: dict[str, Any] = {"application_name": "tercet", "connect_timeout": CONNECT_SECONDS}
        given = self._place.address.options
        connection: psycopg.Connection[Any] = psycopg.connect(
            self._place.conninfo,
            autocommit=True,
            **{name: value for name, value in options.items() if name not in given},
        )
        milliseconds = str(1000 * self._place.options.timeout_seconds)
        connection.execute(
            "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
            " set_config('bytea_output', 'hex', false)",
            [milliseconds, milliseconds],
        )
        connection.adapters.register_dumper(BinaryParameter, BinaryDumper)
        self._was_connected = True
        return connection


@contextmanager
def reading_one_state(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A transaction that only reads, and sees no change of others."""
    connection.isolation_level, connection.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
    try:
        with connection.transaction():
            yield
    finally:
        if not connection.closed:
            connection.isolation_level = connection.read_only = None


_leaked: list[object] = []
"""Connections of the parent process, which must not be closed here: that would end the parent's sessions."""
