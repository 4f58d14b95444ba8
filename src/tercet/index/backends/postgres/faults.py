"""Errors of PostgreSQL and its driver as errors of tercet, without secrets."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from tercet.errors import DatabaseError, InputError, LockedIndexError, TercetError

if TYPE_CHECKING:
    from tercet.index.backends.postgres.place import Place

RESTARTED = ("57P01", "57P02", "57P03")
"""The server shuts down, crashed, or is starting."""
STARTING = ("the database system is starting up", "is not yet accepting connections", "is in recovery mode")
STANDBY_CONFLICT = "40001"
"""A replica cancelled a search, because it had to apply a change of the primary."""
ADVICE = {
    "28P01": "check the password: PGPASSWORD, ~/.pgpass or the address",
    "28000": "check the user and the rules of pg_hba.conf",
    "3D000": "create the database, or choose another one",
    "25006": "this server is read-only, such as a replica: write to the primary",
    "42501": "grant the user this right, or let another user run the output of tercet index migration",
    "53300": "the server has no free connection: raise max_connections, or open fewer indexes",
    "53100": "the server's disk is full",
    "58P01": "install pgvector on the server, see https://github.com/pgvector/pgvector",
    "0A000": "install pgvector on the server, see https://github.com/pgvector/pgvector",
    "57014": "raise timeout_seconds in the address, or ask the server what it waits for",
    "54000": "split the text",
}
"""What to do, by the code of the error."""
INVALID_DATA = ("22", "54")
"""Classes of errors that are about the data that was given."""


@contextmanager
def translated(place: "Place") -> Iterator[None]:
    """Raise errors of the driver as errors of tercet."""
    try:
        yield
    except psycopg.Error as error:
        raise translation(error, place) from None


def translation(error: psycopg.Error, place: "Place") -> TercetError:
    """The error of tercet for an error of the driver."""
    state = error.sqlstate or ""
    if state in ("55P03", "57014") and "lock" in str(error):
        seconds = place.options.timeout_seconds
        return LockedIndexError(
            f"another program has been writing to {place.address} for {seconds} s: wait until it has finished"
        )
    if state in ("42P01", "3F000"):
        return not_an_index(place)
    said = place.address.without_secrets(" ".join(str(error).split()))
    advice = ADVICE.get(state) or ("" if state else "check the address and whether the server runs")
    message = f"{place.address}: {said}" + (f": {advice}" if advice else "")
    return InputError(message) if state.startswith(INVALID_DATA) else DatabaseError(message)


def not_an_index(place: "Place") -> InputError:
    """The error for an address without an index."""
    return InputError(
        f'{place.address} is not an index: build one with "tercet index build FILE --to {place.address}"'
    )


class LostConnectionError(psycopg.OperationalError):
    """The connection broke during a call."""


def is_starting(error: psycopg.Error) -> bool:
    """Whether a server that is there does not answer yet; a failed connection has no code of its error."""
    return error.sqlstate == "57P03" or any(text in str(error) for text in STARTING)


def is_transient(error: psycopg.Error) -> bool:
    """Whether the same search or write can succeed on a new connection."""
    if error.sqlstate in RESTARTED or error.sqlstate == STANDBY_CONFLICT:
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None
