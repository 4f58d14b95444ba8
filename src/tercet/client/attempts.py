"""When a request is sent again, and what its last failure means."""

import json
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar

import httpx2

from tercet.client.calls import Call, Request
from tercet.errors import ServerError

Result = TypeVar("Result")
Outcome: TypeAlias = httpx2.Response | httpx2.RequestError

NOT_EXECUTED = (429, 503)
"""Statuses of requests that the server has not executed and may accept later."""
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds before the first retry, which double each time, and the most."""
UNREACHABLE, TIMEOUT, LOST, ANSWER = "unreachable", "timeout", "connection_lost", "unexpected_answer"
"""Types of the errors that the server has not sent."""


class Patience(NamedTuple):
    """How often a request is sent again, within how many seconds, and how long an answer may take."""

    retries: int
    retry_seconds: float
    timeout: float


class Attempts:
    """The attempts to send one request."""

    def __init__(self, request: Request, url: str, patience: Patience) -> None:
        self.request, self.url, self.patience = request, url, patience
        self._began = time.monotonic()
        self._made = 0
        self._maybe_executed = False

    def after(self, outcome: Outcome) -> httpx2.Response | float:
        """The answer, or the seconds until the next attempt.

        Raises:
            ServerError: the request failed and is not sent again.
        """
        if isinstance(outcome, httpx2.Response) and outcome.status_code in self.request.accepted:
            return outcome
        self._made += 1
        if self._made <= self.patience.retries and may_retry(outcome, self.request):
            pause = pause_before(self._made, retry_after(outcome), jitter=random.random())
            if time.monotonic() - self._began + pause <= self.patience.retry_seconds:
                self._maybe_executed |= not (_is_refusal(outcome) or isinstance(outcome, NOT_SENT))
                return pause
        raise self._error(outcome)

    def _error(self, outcome: Outcome) -> ServerError:
        parts = []
        if self._made > 1:
            parts.append(f"after {self._made} attempts")
        if self.request.changes and self._maybe_executed:
            parts.append("an earlier attempt lost its connection, and may have been executed")
        return error_of(outcome, self.request, self.url, self.patience.timeout, notes=parts)


def may_retry(outcome: Outcome, request: Request) -> bool:
    """Whether the same request may succeed later, and sending it again cannot execute it twice."""
    if not request.retried:
        return False
    if isinstance(outcome, httpx2.Response):
        return _is_refusal(outcome)
    if isinstance(outcome, NOT_SENT):
        return True
    return request.repeatable and isinstance(outcome, (httpx2.NetworkError, httpx2.RemoteProtocolError))


def pause_before(retry: int, asked: float | None, *, jitter: float) -> float:
    """Seconds before a retry, numbered from 1: never less than the server asked for.

    Args:
        jitter: from 0 to 1, random, so that clients that failed together do not come back together.
    """
    backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (retry - 1))
    return (backoff / 2 if asked is None else asked) + jitter * backoff / 2


def retry_after(outcome: Outcome) -> float | None:
    """The seconds that the server asks to wait: a number or a date in ``Retry-After``."""
    text = outcome.headers.get("retry-after", "") if isinstance(outcome, httpx2.Response) else ""
    if text.strip().isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (date - datetime.now(UTC)).total_seconds()) if date.tzinfo else None


def error_of(
    outcome: Outcome, request: Request, url: str, timeout: float, *, notes: Sequence[str] = ()
) -> ServerError:
    """The exception for a request that failed.

    Args:
        notes: added to the message in brackets.
    """
    if isinstance(outcome, httpx2.Response):
        return _refused(outcome, url, notes)
    kind, message = _failure(outcome, url, timeout)
    if kind != UNREACHABLE and request.changes:
        message += "; the index may have been changed or not"
        if not request.repeatable:
            message += (
                ". The request was not sent again, because candidates without ids would be added twice: "
                "compare the size of the index, or give the candidates ids"
            )
    return ServerError(_noted(message, notes), kind=kind)


def result_of(call: Call[Result], responses: Sequence[httpx2.Response], url: str) -> Result:
    """What a call returns, read from the answers to its requests."""
    try:
        return call.read([json.loads(response.content) for response in responses])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ServerError(
            f"the answer of {url} cannot be read ({type(error).__name__}): is it a tercet server of this "
            "version?",
            kind=ANSWER,
        ) from error


def partly_done(error: ServerError, call: Call[Any], done: int) -> ServerError:
    """The error of a call whose first ``done`` requests changed an index."""
    changed = sum(request.changes for request in call.requests[:done])
    if not changed:
        return error
    total = sum(request.changes for request in call.requests)
    return ServerError(
        f"{error}. The first {changed:,} of {total:,} candidates were changed before",
        kind=error.type,
        status=error.status,
        request_id=error.request_id,
        limit=error.limit,
        param=error.param,
    )


def _is_refusal(outcome: Outcome) -> bool:
    return isinstance(outcome, httpx2.Response) and outcome.status_code in NOT_EXECUTED


def _failure(error: httpx2.RequestError, url: str, timeout: float) -> tuple[str, str]:
    """The type and the message of a request without an answer."""
    reason = str(error) or type(error).__name__
    if isinstance(error, NOT_SENT):
        start = 'start the server with "tercet serve", or pass the base_url of one that is running'
        return UNREACHABLE, f"cannot connect to {url} ({reason}): {start}"
    if isinstance(error, httpx2.TimeoutException):
        return TIMEOUT, f"{url} did not answer within {timeout:g} s: send less, or raise timeout"
    return LOST, f"the connection to {url} was lost ({reason})"


def _refused(response: httpx2.Response, url: str, notes: Sequence[str]) -> ServerError:
    status, problem = response.status_code, _problem(response.content)
    if problem is None:
        return ServerError(
            _noted(f"{url} answered {status} {response.reason_phrase}: is it a tercet server?", notes),
            status=status,
            kind=ANSWER,
        )
    kind, request_id = problem.get("type", ANSWER), problem.get("request_id")
    details = [f"{status} {kind}", *([f"request {request_id}"] if request_id else []), *notes]
    return ServerError(
        _noted(str(problem["message"]), details),
        kind=kind,
        status=status,
        request_id=request_id,
        limit=problem.get("limit"),
        param=problem.get("param"),
    )


def _problem(body: bytes) -> dict[str, Any] | None:
    """The ``error`` of an answer; None if it has another shape."""
    try:
        found = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) and "message" in found else None


def _noted(message: str, notes: Sequence[str]) -> str:
    return f"{message} ({', '.join(notes)})" if notes else message
