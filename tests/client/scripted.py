"""A server on a real socket that answers as a test says, and remembers what it was asked."""

import json
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


LOSE = "read the request, then close the connection"
Step = Reply | str | Callable[[Any], Reply]


class Script(ThreadingHTTPServer):
    """Answers with one step after another; the last one is repeated."""

    daemon_threads = True

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps = steps
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.open = self.most_open = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body, _ in self.requests]


class _Handler(BaseHTTPRequestHandler):
    server: Script
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        server = self.server
        with server.lock:
            server.requests.append((self.path, body, dict(self.headers)))
            step = server.steps.pop(0) if len(server.steps) > 1 else server.steps[0]
            server.open += 1
            server.most_open = max(server.most_open, server.open)
        try:
            self._send(step(body) if callable(step) else step)
        finally:
            with server.lock:
                server.open -= 1

    def _send(self, step: Reply | str) -> None:
        if not isinstance(step, Reply):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        content = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        self.send_response(step.status)
        for name, value in (step.headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def handle(self) -> None:
        with suppress(OSError):  # the client has gone
            super().handle()

    def log_message(self, *_: object) -> None:
        """Keep the output of tests clean."""


@contextmanager
def scripted(*steps: Step) -> Iterator[Script]:
    """A server that answers with these steps."""
    server = Script(list(steps))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def problem(status: int, kind: str, *, retry_after: str | None = None) -> Reply:
    """An error in the shape of the server."""
    error = {"message": f"it is {kind}", "type": kind, "code": status, "request_id": "r1"}
    return Reply(status, {"error": error}, {} if retry_after is None else {"Retry-After": retry_after})


def embedded(body: Any) -> Reply:
    """Vectors whose only dimension is the number that the text spells."""
    rows = [b64encode(np.array([float(text)], dtype="<f4").tobytes()).decode() for text in body["input"]]
    data = [{"index": index, "embedding": row} for index, row in enumerate(rows)]
    return Reply(body={"data": data, "model": "bi", "truncated": []})


def written(body: Any) -> Reply:
    """A change of an index of 100 candidates."""
    return Reply(body={"index": "faq", "changed": len(body.get("candidates", body.get("ids"))), "size": 100})
