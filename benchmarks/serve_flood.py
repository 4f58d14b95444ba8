"""Requests at a fixed rate, whatever the server does, by a client that needs little processor time itself."""

import argparse
import asyncio
import json
import re
from collections import Counter, deque
from pathlib import Path
from typing import Any

import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
MAX_CONNECTIONS = 900


class Connection(asyncio.Protocol):
    """A connection that sends one request at a time, and is idle afterwards."""

    def __init__(self, idle: "deque[Connection]", statuses: Counter[str]) -> None:
        self._idle, self._statuses = idle, statuses
        self._received = b""

    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        self._transport = transport

    def send(self, request: bytes) -> None:
        """Send a request, unless the server has closed the connection."""
        if not self._transport.is_closing():
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if end and length is not None and len(body) >= int(length[1]):
            self._statuses[head[9:12].decode()] += 1
            self._received = b""
            self._idle.append(self)


async def flood(port: int, path: str, bodies: list[str], *, rate: float, seconds: float) -> Counter[str]:
    """How many answers of each status came; "not sent" if all connections were busy."""
    loop, idle, statuses = asyncio.get_running_loop(), deque[Connection](), Counter[str]()
    requests = [written(path, body.encode()) for body in bodies]
    began, number, connections = loop.time(), 0, 0
    while (now := loop.time() - began) < seconds:
        for number in range(number, int(now * rate)):  # noqa: B020 (goes on where it stopped)
            if not idle and connections < MAX_CONNECTIONS:
                connections += 1
                made = await loop.create_connection(lambda: Connection(idle, statuses), "127.0.0.1", port)
                idle.append(made[1])
            if idle:
                idle.popleft().send(requests[(number * 7919) % len(requests)])
            else:
                statuses["not sent"] += 1
        number = int(now * rate)
        await asyncio.sleep(0.002)
    return statuses


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
