"""What every request passes before a route sees it: keys, limits, time, and one shape of errors."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tercet.files.escapes import escaped
from tercet.serve.headers import API_HEADERS, SECURITY_HEADERS, request_id
from tercet.serve.json_body import json_bytes
from tercet.serve.keys import Key, Scope, scope_of
from tercet.serve.metrics import Metrics
from tercet.serve.overload import CURRENT, Request
from tercet.serve.problems import ProblemError, problem_of, status_problem
from tercet.serve.refusals import MAX_DISCARDED_BYTES, overloaded
from tercet.settings.serve import LOOPBACK, ServerConfig

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LOG = logging.getLogger("tercet.serve")
HOST = re.compile(r"(?:\[([0-9a-f:]+)\]|([^:\[\]]*))(?::\d*)?")
HEALTH = "/health/"
OPEN_PATHS = ("/", "/health/live", "/health/ready")
"""What needs no key: the page, which asks for one, and what tells whether the server lives."""
PLAYGROUND = "/playground/"
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")


class Guard:
    """ASGI middleware around the routes."""

    def __init__(self, app: App, config: ServerConfig, keys: list[Key], metrics: Metrics) -> None:
        self.app, self.config, self.keys, self.metrics = app, config, keys, metrics
        self._open = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or pass on what is not one."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, send, self.config)
        counted = not exchange.path.startswith(HEALTH)
        self._open += counted
        self.metrics.open_requests.set(self._open)
        try:
            await self._answer(exchange, receive, counted=counted)
        except Exception as error:
            await self._refuse(exchange, error)
        finally:
            self._open -= counted
            self.metrics.open_requests.set(self._open)
            self._note(exchange)

    async def _answer(self, exchange: "Exchange", receive: Receive, *, counted: bool) -> None:
        limits = self.config.limits
        if counted and self._open > limits.max_requests:
            raise ProblemError(
                429,
                "overloaded",
                f"at most {limits.max_requests} requests are answered at once (max_requests): "
                "try again later",
                limit="max_requests",
                retry_after=1,
            )
        self._check_site(exchange)
        if CONTROL_CHARACTER.search(exchange.path):  # a route's pattern may accept a newline at its end
            raise status_problem(404, "there is no such path")
        body = b""
        if exchange.is_open:
            if exchange.scope["method"] not in ("GET", "HEAD"):
                raise status_problem(405, "this path is only for GET")
        else:
            self._check_key(exchange)
            if not exchange.has_small_body:
                self._check_queue(exchange)
            body = await read_body(exchange, receive, self.config)
            if exchange.has_small_body:  # once it was read, the connection can be used again
                self._check_queue(exchange)
        if self.config.serve.log_texts and body:
            text = escaped(body.decode("utf-8", errors="replace")).replace("\n", "\\n")
            LOG.info("%s body %s", exchange.request_id, text)
        await self._route(exchange, body, receive)

    async def _route(self, exchange: "Exchange", body: bytes, receive: Receive) -> None:
        """Let the route answer. It is cancelled if that takes too long, or if the client goes away."""
        seconds = self.config.limits.request_seconds
        task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]
        CURRENT.set(Request())
        watching = asyncio.ensure_future(_cancel_if_gone(task, exchange, receive))
        try:
            async with asyncio.timeout(seconds) as limit:
                await self.app(exchange.scope, _replayed(body), exchange.send)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ProblemError(
                408,
                "timeout",
                f"the answer took longer than {seconds:g} s (request_seconds): send less, or try again later",
                limit="request_seconds",
            ) from None
        except asyncio.CancelledError:
            if not exchange.client_is_gone or task.uncancel():
                raise
            exchange.status = 499  # as nginx notes it
        finally:
            watching.cancel()

    def _check_queue(self, exchange: "Exchange") -> None:
        """Refuse early if nothing fits into the queues: the work on a request costs more than refusing it."""
        if exchange.scope["method"] != "POST":
            return
        service = getattr(exchange.scope["app"].state, "service", None)
        if service is not None and service.engine.is_full():
            raise overloaded()

    def _check_site(self, exchange: "Exchange") -> None:
        """Without keys, no page of another site may reach the server, not even by a name that points here."""
        serve = self.config.serve
        if self.keys or not serve.is_local:
            return
        names = {*LOOPBACK, *map(str.lower, serve.allowed_hosts)}
        host, origin = exchange.header(b"host"), exchange.header(b"origin")
        if host and _host_name(host) not in names:
            raise ProblemError(
                421,
                "wrong_host",
                "this server answers to localhost only: use that name, add yours to serve.allowed_hosts, or "
                "use API keys",
            )
        if not origin or {"*", origin.decode("latin-1")} & {*serve.cors_origins}:
            return
        if _host_name(origin.partition(b"://")[2]) not in names:
            raise ProblemError(
                403,
                "foreign_origin",
                "pages of other sites may not call this server: name them in serve.cors_origins",
            )

    def _check_key(self, exchange: "Exchange") -> None:
        """Raise without a valid key; the routes that change indexes ask what it may do."""
        if not self.keys:
            exchange.scope["state"]["scope"] = "write"
            return
        found: Scope | None = scope_of(self.keys, exchange.key)
        if found is None:
            raise ProblemError(
                401, "unauthorized", "a valid API key is needed: send Authorization: Bearer KEY"
            )
        exchange.scope["state"]["scope"] = found

    async def _refuse(self, exchange: "Exchange", error: Exception) -> None:
        problem = error if isinstance(error, ProblemError) else problem_of(error)
        self.metrics.errors.labels(problem.kind).inc()
        if problem.status >= 500:
            LOG.error("%s %s", exchange.request_id, problem.kind, exc_info=error)
        await exchange.send_problem(problem)

    def _note(self, exchange: "Exchange") -> None:
        seconds = time.perf_counter() - exchange.began
        self.metrics.requests.labels(exchange.route, str(exchange.status)).inc()
        self.metrics.request_seconds.labels(exchange.route).observe(seconds)
        LOG.info(
            "%s %s %s %d %.1f ms",
            exchange.request_id,
            exchange.scope["method"],
            exchange.route,
            exchange.status,
            1000 * seconds,
        )


class Exchange:
    """A request and what was sent in answer."""

    def __init__(self, scope: MutableMapping[str, Any], send: Send, config: ServerConfig) -> None:
        self.scope, self._send, self._config = scope, send, config
        self._headers = dict(reversed(scope["headers"]))  # the first one counts
        self.began = time.perf_counter()
        self.path: str = scope["path"]
        self.request_id = request_id(self.header(b"x-request-id"))
        self.status = 0
        self.body_was_read = False
        self.client_is_gone = False
        self.is_answered = False
        self._is_page = self.path == "/" or self.path.startswith(PLAYGROUND)
        scope.setdefault("state", {})["request_id"] = self.request_id

    @property
    def route(self) -> str:
        """The path with placeholders, so that metrics have few labels."""
        found = self.scope.get("route")
        return str(getattr(found, "path", "")) or "other"

    @property
    def is_open(self) -> bool:
        """Whether the path needs no key."""
        return self.path in OPEN_PATHS or self.path.startswith(PLAYGROUND)

    @property
    def has_body(self) -> bool:
        """Whether the client sends a body."""
        return bool(self.header(b"transfer-encoding")) or self.header(b"content-length") not in (b"", b"0")

    @property
    def has_small_body(self) -> bool:
        """Whether the body is declared to be so small that reading it costs little."""
        declared = self.header(b"content-length")
        return declared.isdigit() and int(declared[:20]) <= MAX_DISCARDED_BYTES

    @property
    def key(self) -> bytes:
        """The API key of the request; empty if there is none."""
        scheme, _, token = self.header(b"authorization").partition(b" ")
        return token.strip() if scheme.lower() == b"bearer" else self.header(b"x-api-key")

    def header(self, name: bytes) -> bytes:
        """A header; empty if there is none."""
        return bytes(self._headers.get(name, b""))

    async def send(self, message: Message) -> None:
        """Send a part of the answer, with our headers, to a client that reads it in time."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            added = SECURITY_HEADERS if self._is_page else (*SECURITY_HEADERS, *API_HEADERS)
            present = {key.lower() for key, _ in message.get("headers", ())}
            message["headers"] = [
                *message.get("headers", ()),
                *(pair for pair in added if pair[0] not in present),
                (b"x-request-id", self.request_id.encode()),
            ]
            if self.has_body and not self.body_was_read:
                message["headers"].append((b"connection", b"close"))  # what follows is not a request
        else:
            self.is_answered = not message.get("more_body", False)
        async with asyncio.timeout(self._config.limits.send_seconds):
            await self._send(message)

    async def send_problem(self, problem: ProblemError) -> None:
        """Answer with an error, unless an answer has begun."""
        if self.status:
            return
        body = json_bytes(problem.body(self.request_id))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if problem.retry_after is not None:
            headers.append((b"retry-after", str(problem.retry_after).encode()))
        if problem.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


async def read_body(exchange: Exchange, receive: Receive, config: ServerConfig) -> bytes:
    """The whole body, if it is small enough and comes in time."""
    limits = config.limits
    too_large = ProblemError(
        413,
        "too_large",
        f"a request may have {limits.max_body_bytes:,} bytes (max_body_bytes): send less at a time",
        limit="max_body_bytes",
    )
    declared = exchange.header(b"content-length")
    if declared.isdigit() and int(declared[:20]) > limits.max_body_bytes:
        raise too_large
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(limits.body_seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ProblemError(
                        400, "incomplete", "the connection ended before the request was complete"
                    )
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > limits.max_body_bytes:
                    raise too_large
    except TimeoutError:
        raise ProblemError(
            408,
            "timeout",
            f"the request did not arrive within {limits.body_seconds:g} s (body_seconds): send it faster",
            limit="body_seconds",
        ) from None
    exchange.body_was_read = True
    return b"".join(parts)


def _replayed(body: bytes) -> Receive:
    """A ``receive`` that hands out the body once, and then waits."""
    waiting = [body]

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await asyncio.Future()
        raise AssertionError

    return receive


def _host_name(given: bytes) -> str | None:
    """The name in ``NAME:PORT`` or ``[ADDRESS]:PORT``; None if it has another form."""
    found = HOST.fullmatch(given.decode("latin-1").lower())
    return None if found is None else found[1] or found[2]


async def _cancel_if_gone(task: "asyncio.Task[Any]", exchange: Exchange, receive: Receive) -> None:
    """Cancel the task of a request when the client disconnects before it has its answer."""
    while (await receive())["type"] != "http.disconnect":
        pass
    if not exchange.is_answered:  # uvicorn reports the end of an answer as a disconnection too
        exchange.client_is_gone = True
        task.cancel()
