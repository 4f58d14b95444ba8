"""Running the server: one process, or several that share a socket."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any

import uvicorn

from tercet.errors import InputError, TercetError
from tercet.serve.app import create_app
from tercet.serve.connections import PatientProtocol
from tercet.serve.metrics import SHARED_FOLDER
from tercet.serve.service import Service
from tercet.settings.serve import ServerConfig

KEEP_ALIVE_SECONDS = 75
RESTART_AFTER = 10.0
"""A worker that lived this many seconds is started again if it dies."""
LOADING_FAILED = 3
"""Exit status of a worker whose models cannot be loaded."""


class StartError(TercetError):
    """The server could not start."""


def listen(config: ServerConfig) -> socket.socket:
    """A socket on the configured address."""
    serve = config.serve
    family = socket.AF_INET6 if ":" in serve.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # ends connections whose client never reads
        milliseconds = int(1000 * config.limits.send_seconds)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    try:
        bound.bind((serve.host, serve.port))
    except OSError as error:
        bound.close()
        raise InputError(
            f"cannot listen on {serve.host}:{serve.port} ({error.strerror}): choose another --port"
        ) from None
    bound.set_inheritable(True)
    return bound


def run_server(config: ServerConfig, bound: socket.socket, on_ready: Callable[[Service], None]) -> None:
    """Serve in this process until SIGTERM or Ctrl-C.

    Args:
        on_ready: called when the models are loaded.
    """
    failures: list[Exception] = []

    def fail(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again after it has stopped
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(_uvicorn_config(config, create_app(config, on_ready=on_ready, on_failure=fail)))
    server.run(sockets=[bound])
    if failures:
        raise failures[0]


def run_workers(config: ServerConfig, bound: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve in several processes. One that dies is started again, unless it could not start at all."""
    with tempfile.TemporaryDirectory(prefix="tercet-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        Workers(config, bound, on_ready).run()


class Workers:
    """The processes of a server."""

    def __init__(self, config: ServerConfig, bound: socket.socket, on_ready: Callable[[], None]) -> None:
        self.config, self.bound, self.on_ready = config, bound, on_ready
        self._context = multiprocessing.get_context("spawn")
        self._ready = self._context.Semaphore(0)
        self._stopping = False
        self._processes: list[tuple[SpawnProcess, float]] = []

    def run(self) -> None:
        """Start the workers and wait until they end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._processes = [self._start() for _ in range(self.config.serve.workers)]
        waiting = self.config.serve.workers
        while any(process.is_alive() for process, _ in self._processes) or not self._stopping:
            if waiting and self._ready.acquire(timeout=0.2):
                waiting -= 1
                if not waiting:
                    self.on_ready()
            elif not waiting:
                time.sleep(0.2)
            if not self._stopping:
                self._processes = [self._restarted(*each) for each in self._processes]

    def _start(self) -> tuple[SpawnProcess, float]:
        process = self._context.Process(target=_work, args=(self.config, self.bound, self._ready))
        process.start()
        return process, time.monotonic()

    def _restarted(self, process: SpawnProcess, began: float) -> tuple[SpawnProcess, float]:
        if process.is_alive():
            return process, began
        if process.exitcode == LOADING_FAILED or time.monotonic() - began < RESTART_AFTER:
            self._stop()
            raise StartError(f"a worker ended with status {process.exitcode}: see the lines above")
        logging.getLogger("tercet.serve").error("a worker ended with status %s", process.exitcode)
        return self._start()

    def _stop(self, *signal_and_frame: object) -> None:
        self._stopping = True
        for process, _ in self._processes:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)


def _work(config: ServerConfig, bound: socket.socket, ready: Any) -> None:
    """A worker process."""
    configure_log()
    try:
        run_server(config, bound, lambda service: ready.release())
    except TercetError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(LOADING_FAILED)


def configure_log() -> None:
    """One line per request on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("tercet.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


def _uvicorn_config(config: ServerConfig, app: Any) -> uvicorn.Config:
    protocol = type("Protocol", (PatientProtocol,), {"header_seconds": config.limits.body_seconds})
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=config.limits.max_connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(config.serve.drain_seconds) or 1,
        backlog=2048,
    )
