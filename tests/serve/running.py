"""Real servers, as processes of their own."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS_TO_LOAD = 180
SECONDS_TO_STOP = 40


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready."""

    url: str
    log: Path
    """What it wrote to standard error."""


@contextmanager
def running_server(*options: str, log: Path, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """``tercet serve`` on a free port of this machine; it is stopped at the end.

    Args:
        log: a file for its standard error.
    """
    command = [sys.executable, "-m", "tercet", "serve", "--port", "0", *options]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, env=os.environ | (environment or {}))
    try:
        yield Server(_address(process, log), log)
    finally:
        process.terminate()
        try:
            process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address that the server prints when its models are loaded."""
    end = time.monotonic() + SECONDS_TO_LOAD
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"^tercet serves (\S+)$", log.read_text(), re.MULTILINE)
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"the server is not ready: {log.read_text()}")
