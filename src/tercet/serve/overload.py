"""Whether more requests come than the engine can answer, and how long a new one may wait then.

Many requests at once are no overload: 64 clients that each wait for their answer keep a long queue, but it
does not grow. So a burst may wait. If more requests wait than a burst has, the engine accepts only those that
it can begin almost at once, until no more has to be refused for a second.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CALM_SECONDS = 1.0
"""An overload ends after this time without a refused request."""
RETRY_SECONDS = 2
"""After this time a refused client finds a calm server, if all of them wait."""
WAIT_SHARE = 0.25
"""Share of the time of an undisturbed request that an accepted one may wait in an overload."""
FEW = 20
"""Undisturbed requests, below which their times are not known."""
REMEMBERED = 256
QUANTILE = 0.9
"""Undisturbed requests whose times are kept, and the quantile of these times that counts."""


@dataclass(slots=True, eq=False)
class Request:
    """A request of a client. It may need the engine several times, and is admitted once."""

    admitted: bool = False
    runs: int = 0


CURRENT: ContextVar[Request | None] = ContextVar("tercet_request", default=None)
"""The request on whose behalf the engine is called; without one, each call is a request."""


class Overload:
    """Counts the requests that wait for the engine, and remembers refused ones.

    Args:
        burst_requests: requests that may wait at the same time before the engine counts as overloaded.
    """

    def __init__(self, burst_requests: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst_requests, self._clock = burst_requests, clock
        self._waiting = 0
        self._until = float("-inf")

    @property
    def is_active(self) -> bool:
        """Whether the engine is overloaded."""
        return self._clock() < self._until

    @property
    def begins(self) -> bool:
        """Whether more requests wait than a burst has, and the engine does not count as overloaded yet."""
        return self._waiting > self._burst_requests and not self.is_active

    def prolong(self) -> None:
        """Note that a request is refused: the engine is overloaded for another second."""
        self._until = self._clock() + CALM_SECONDS

    @contextmanager
    def waiting(self, request: Request) -> Iterator[None]:
        """Count a request while it waits, once even if it waits for several results."""
        self._waiting += not request.runs
        request.runs += 1
        try:
            yield
        finally:
            request.runs -= 1
            self._waiting -= not request.runs


class UndisturbedTimes:
    """How long requests took that found an idle engine."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)
        self._typical: float | None = None

    def add(self, seconds: float) -> None:
        """Note the time of a request."""
        self._seconds.append(seconds)
        self._typical = None

    def patience(self, full_batch: float) -> float:
        """How many seconds a request may wait in an overload.

        Args:
            full_batch: seconds of a full batch; taken while little is known, and at most.
        """
        if len(self._seconds) < FEW:
            return WAIT_SHARE * full_batch
        if self._typical is None:
            self._typical = sorted(self._seconds)[int(QUANTILE * (len(self._seconds) - 1))]
        return WAIT_SHARE * min(self._typical, full_batch)
