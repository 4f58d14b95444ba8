"""Running the server: one process, or several that share a socket."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

import uvicorn
from prometheus_client import multiprocess

from tercet.errors import InputError, TercetError
from tercet.serve.app import create_app
from tercet.serve.connections import PatientProtocol
from tercet.serve.metrics import SHARED_FOLDER
from tercet.serve.service import Service
from tercet.settings.serve import ServerConfig

KEEP_ALIVE_SECONDS = 75
CHECKED_EVERY = 0.2
"""Seconds between two looks at the other processes."""


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


def run_server(
    config: ServerConfig,
    bound: socket.socket,
    on_ready: Callable[[Service], None],
    *,
    load_first: bool = False,
) -> None:
    """Serve in this process until SIGTERM or Ctrl-C.

    Args:
        on_ready: called when the models are loaded.
        load_first: load them before requests are accepted, because other processes answer them.
    """
    failures: list[Exception] = []

    def fail(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again after it has stopped
        signal.signal(number, lambda *_: None)
    app = create_app(config, load_first=load_first, on_ready=on_ready, on_failure=fail)
    server = uvicorn.Server(uvicorn_config(config, app))
    server.run(sockets=[bound])
    if failures:
        raise failures[0]


def run_workers(config: ServerConfig, bound: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve in several processes. One that dies is started again, unless it could not start at all."""
    with tempfile.TemporaryDirectory(prefix="tercet-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        Workers(config, bound, on_ready).run()


class Worker(NamedTuple):
    """A process, and whether its models were loaded."""

    process: SpawnProcess
    ready: Any
    """An event of multiprocessing."""


class Workers:
    """The processes of a server."""

    def __init__(self, config: ServerConfig, bound: socket.socket, on_ready: Callable[[], None]) -> None:
        self.config, self.bound, self.on_ready = config, bound, on_ready
        self._context = multiprocessing.get_context("spawn")
        self._stopping = False

    def run(self) -> None:
        """Start the workers and wait until they end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        workers = [self._start() for _ in range(self.config.serve.workers)]
        was_ready = False
        try:
            while not self._stopping:
                if not was_ready and all(worker.ready.is_set() for worker in workers):
                    was_ready = True
                    self.on_ready()
                time.sleep(CHECKED_EVERY)
                workers = [self._restarted(worker) for worker in workers]
        finally:
            for worker in workers:
                worker.process.terminate()
            for worker in workers:
                worker.process.join()

    def _start(self) -> Worker:
        ready = self._context.Event()
        process = self._context.Process(target=_work, args=(self.config, self.bound, ready, os.getpid()))
        process.start()
        return Worker(process, ready)

    def _restarted(self, worker: Worker) -> Worker:
        if self._stopping or worker.process.is_alive():
            return worker
        if not worker.ready.is_set():
            raise StartError(f"a worker ended with status {worker.process.exitcode}: see the lines above")
        logging.getLogger("tercet.serve").error("a worker ended with status %s", worker.process.exitcode)
        forget: Any = multiprocess.mark_process_dead
        forget(worker.process.pid)
        return self._start()

    def _stop(self, *signal_and_frame: object) -> None:
        self._stopping = True


def _work(config: ServerConfig, bound: socket.socket, ready: Any, parent: int) -> None:
    """A worker process; it ends with its parent."""
    configure_log()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        run_server(config, bound, lambda _: ready.set(), load_first=True)
    except TercetError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)


def _end_with(parent: int) -> None:
    """Stop this process when its parent is gone, even if that was killed."""
    while os.getppid() == parent:
        time.sleep(CHECKED_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


def configure_log() -> None:
    """One line per request on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("tercet.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


def uvicorn_config(config: ServerConfig, app: Any) -> uvicorn.Config:
    """uvicorn with our limits on connections."""
    limits = {
        "refusals": app.state.refusals,
        "header_seconds": config.limits.body_seconds,
        "max_connections": config.limits.max_connections,
    }
    protocol = type("Protocol", (PatientProtocol,), limits)
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(config.serve.drain_seconds) or 1,
        backlog=2048,
    )
