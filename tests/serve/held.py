"""A server in a thread of the test, whose forward passes a test can hold."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from tercet.serve.app import create_app
from tercet.serve.run import listen, uvicorn_config
from tercet.serve.service import Service
from tercet.settings.serve import ServerConfig

SECONDS = 120
"""How long forward passes are held at most."""
PATIENCE = 30
"""Seconds that a test waits for something."""


@dataclass(frozen=True)
class HeldServer:
    """A server that is ready."""

    port: int
    service: Service
    gate: threading.Event
    """Forward passes wait while it is cleared."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def queued(self) -> int:
        """Texts and pairs that wait or are computed."""
        return sum(len(loaded.queue.in_flight) for loaded in self.service.engine._models.values())


@contextmanager
def held_server(config: ServerConfig) -> Iterator[HeldServer]:
    """A server on a free port of this machine; it is stopped at the end."""
    ready, gate, found = threading.Event(), threading.Event(), []
    gate.set()

    def on_ready(service: Service) -> None:
        for name in service.engine.names:
            _hold(service.engine.model(name), gate)
        found.append(service)
        ready.set()

    with listen(config) as bound:
        server = uvicorn.Server(uvicorn_config(config, create_app(config, on_ready=on_ready)))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            assert ready.wait(SECONDS)
            yield HeldServer(bound.getsockname()[1], found[0], gate)
        finally:
            gate.set()
            server.should_exit = True
            thread.join(SECONDS)


def _hold(model: Any, gate: threading.Event) -> None:
    run = model.run

    def held(lane: Any, tokens: Any) -> Any:
        assert gate.wait(SECONDS)
        return run(lane, tokens)

    model.run = held


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when something holds, or fail."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
