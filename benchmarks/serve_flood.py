"""Requests at a fixed rate, whatever the server does, by a client that needs little processor time itself."""

import argparse
import asyncio
import json
import re
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
MAX_CONNECTIONS = 900


class Connections:
    """Connections of which each sends one request at a time, and the statuses of the answers."""

    def __init__(self, port: int) -> None:
        self._port, self._open = port, 0
        self._idle: deque[Connection] = deque()
        self.statuses: Counter[str] = Counter()

    async def send(self, request: bytes) -> None:
        """Send a request by an idle or a new connection, if there are not too many."""
        if not self._idle and self._open < MAX_CONNECTIONS:
            self._open += 1
            loop = asyncio.get_running_loop()
            _, made = await loop.create_connection(lambda: Connection(self), "127.0.0.1", self._port)
            self._idle.append(made)
        if self._idle:
            self._idle.popleft().send(request)
        else:
            self.statuses["not sent"] += 1

    def answered(self, connection: "Connection", status: str) -> None:
        """Count an answer; the connection is idle again."""
        self.statuses[status] += 1
        self._idle.append(connection)

    def closed(self, connection: "Connection") -> None:
        """Forget a connection."""
        self._open -= 1
        with suppress(ValueError):
            self._idle.remove(connection)


class Connection(asyncio.Protocol):
    """A connection that sends one request at a time."""

    def __init__(self, others: Connections) -> None:
        self._others = others
        self._received = b""

    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.closed(self)

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if end and length is not None and len(body) >= int(length[1]):
            self._received = b""
            self._others.answered(self, head[9:12].decode())


async def flood(port: int, path: str, bodies: list[str], *, rate: float, seconds: float) -> Counter[str]:
    """How many answers of each status came; "not sent" if all connections were busy."""
    loop, connections = asyncio.get_running_loop(), Connections(port)
    requests = [written(path, body.encode()) for body in bodies]
    began, sent = loop.time(), 0
    while (now := loop.time() - began) < seconds:
        while sent < int(now * rate):
            await connections.send(requests[(sent * 7919) % len(requests)])
            sent += 1
        await asyncio.sleep(0.002)
    return connections.statuses


def written(path: str, body: bytes) -> bytes:
    """A request as it is sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--bodies", type=Path, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    bodies = json.loads(options.bodies.read_text())
    work = flood(options.port, options.path, bodies, rate=options.rate, seconds=options.seconds)
    print(json.dumps(uvloop.run(work)))


if __name__ == "__main__":
    main()
