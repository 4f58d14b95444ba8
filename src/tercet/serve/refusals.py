"""429 for requests whose body was not read yet: nothing is started for them, so others keep their time."""

import logging
import time
from collections.abc import Sequence

from tercet.serve.engine import Engine
from tercet.serve.headers import API_HEADERS, SECURITY_HEADERS, request_id
from tercet.serve.json_body import json_bytes
from tercet.serve.metrics import Metrics
from tercet.serve.overload import RETRY_SECONDS
from tercet.serve.problems import ProblemError

LOG = logging.getLogger("tercet.serve")
MAX_DISCARDED_BYTES = 65_536
"""A body of this size is read and dropped, so that the connection can be used again."""
LOGGED_EVERY = 1.0
"""Seconds between two lines of the log: one for each request would cost more than the refusal."""
SPECIAL = frozenset((b"expect", b"origin", b"transfer-encoding"))
"""Headers of requests that take the long way, where the guard refuses them too."""


def overloaded() -> ProblemError:
    """The refusal of a request when all queues are full."""
    return ProblemError(
        429,
        "overloaded",
        "more requests come than the models can answer: try again later",
        retry_after=RETRY_SECONDS,
    )


class Refusals:
    """Refuses requests as soon as their headers are here, while the engine takes no more."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._engine: Engine | None = None
        self._unlogged, self._logged = 0, 0.0

    def watch(self, engine: Engine) -> None:
        """Refuse requests while this engine is full."""
        self._engine = engine

    def answer(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
        """The whole answer to a POST request of HTTP/1.1, or None if it is not refused here."""
        if self._engine is None or not self._engine.is_full():
            return None
        found = dict(headers)
        size = found.get(b"content-length", b"")
        if SPECIAL & found.keys() or not size.isdigit() or int(size[:20]) > MAX_DISCARDED_BYTES:
            return None
        self._note()
        return _written(overloaded(), request_id(found.get(b"x-request-id", b"")))

    def _note(self) -> None:
        self._metrics.requests.labels("other", "429").inc()
        self._metrics.errors.labels("overloaded").inc()
        self._unlogged += 1
        now = time.monotonic()
        if now - self._logged >= LOGGED_EVERY:
            LOG.info("overloaded: refused %d requests", self._unlogged)
            self._unlogged, self._logged = 0, now


def _written(problem: ProblemError, name: str) -> bytes:
    body = json_bytes(problem.body(name))
    headers = (
        *SECURITY_HEADERS,
        *API_HEADERS,
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", str(problem.retry_after).encode()),
        (b"x-request-id", name.encode()),
    )
    lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
    return b"HTTP/1.1 429 Too Many Requests\r\n" + lines + b"\r\n" + body
