"""Failures as HTTP answers: one shape, which OpenAI's clients read too, and never a text or a stack trace."""

from http import HTTPStatus
from typing import Any, NamedTuple

from tercet.errors import (
    BrokenIndexError,
    InputError,
    LockedIndexError,
    OverloadedError,
    TercetError,
)
from tercet.serve.engine import TooManyTokensError, UnknownModelError
from tercet.serve.indexes import MissingIndexError
from tercet.serve.service import UnknownIndexError


class ProblemError(Exception):
    """A request that is refused or failed.

    Args:
        status: the HTTP status.
        kind: a short name of the problem, for programs.
        message: what must hold, what came, and what to do next.
        limit: the setting that was exceeded.
        param: the part of the request that is wrong.
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        limit: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.limit, self.param, self.retry_after = limit, param, retry_after

    def body(self, request_id: str) -> dict[str, Any]:
        """The JSON of the answer."""
        error = {
            "message": self.message,
            "type": self.kind,
            "code": self.status,
            "param": self.param,
            "limit": self.limit,
            "request_id": request_id,
        }
        return {"error": error}


class _Rule(NamedTuple):
    status: int
    kind: str


RULES: dict[type[Exception], _Rule] = {
    UnknownModelError: _Rule(404, "unknown_model"),
    UnknownIndexError: _Rule(404, "unknown_index"),
    TooManyTokensError: _Rule(413, "too_large"),
    OverloadedError: _Rule(429, "overloaded"),
    LockedIndexError: _Rule(503, "index_busy"),
    MissingIndexError: _Rule(503, "index_missing"),
    InputError: _Rule(422, "invalid_request"),
}
"""How errors are answered; the first class that fits counts."""

RETRY_SECONDS = 1


def problem_of(error: Exception) -> ProblemError:
    """The answer to an error. Unexpected ones say nothing about the cause, which only the log has."""
    for kind, rule in RULES.items():
        if isinstance(error, kind):
            return ProblemError(
                rule.status,
                rule.kind,
                str(error),
                limit="max_request_tokens" if isinstance(error, TooManyTokensError) else None,
                retry_after=_retry_after(error, rule.status),
            )
    if isinstance(error, BrokenIndexError):
        return ProblemError(
            500, "broken_index", 'the index is damaged: run "tercet index verify" on the server'
        )
    if isinstance(error, TercetError):
        return ProblemError(500, "model_failed", "the model or the index failed: see the log of the server")
    if isinstance(error, MemoryError):
        return ProblemError(503, "out_of_memory", "the server is out of memory: send less", retry_after=5)
    return ProblemError(500, "internal_error", "the server failed: see its log for this request_id")


def status_problem(status: int, detail: str) -> ProblemError:
    """The answer to a wrong path or method."""
    phrase = HTTPStatus(status).phrase
    return ProblemError(status, phrase.lower().replace(" ", "_"), detail or phrase)


def _retry_after(error: Exception, status: int) -> int | None:
    if isinstance(error, OverloadedError):
        return error.retry_after
    return RETRY_SECONDS if status == 503 else None
