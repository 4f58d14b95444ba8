"""Real servers as processes of their own, and tiny models for them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from tests.conftest import SENTENCES, make_folder

import tercet

SECONDS_TO_LOAD = 180
SECONDS_TO_STOP = 40


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready."""

    url: str
    log: Path
    """What it wrote."""
    process: "subprocess.Popen[bytes]"

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rsplit(":", 1)[1])

    def post(self, path: str, body: object = None, **options: object) -> httpx2.Response:
        """Send a request with a JSON body."""
        return httpx2.post(self.url + path, json=body, timeout=30, **options)


@contextmanager
def running_server(*options: str, log: Path, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """``tercet serve`` on a free port of this machine; it is stopped at the end.

    Args:
        log: a file for what it writes.
    """
    command = [sys.executable, "-m", "tercet", "serve", "--port", "0", *options]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=os.environ | (environment or {}))
    try:
        yield Server(_address(process, log), log, process)
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
        time.sleep(0.05)
    raise AssertionError(f"the server is not ready: {log.read_text()}")


def tiny_models(folder: Path) -> Path:
    """Folders ``bi``, ``poly`` and ``cross`` with tiny models, and ``faq.tercet``, an index of sentences."""
    encoder = make_folder(folder / "encoder")
    bi = tercet.BiEncoder.from_backbone(encoder)
    bi.save(folder / "bi")
    tercet.PolyEncoder.from_backbone(encoder, config=tercet.PolyConfig(codes=4)).save(folder / "poly")
    tercet.CrossEncoder.from_backbone(encoder).save(folder / "cross")
    with tercet.Retriever(folder / "bi", path=folder / "faq.tercet") as retriever:
        retriever.add(
            {"id": str(number), "text": text, "length": len(text)} for number, text in enumerate(SENTENCES)
        )
    return folder


def tiny_options(folder: Path, *names: str) -> Sequence[str]:
    """Options of a server with these models and the index."""
    chosen = names or ("bi", "poly", "cross")
    models = [option for name in chosen for option in ("--model", str(folder / name))]
    return [*models, "--index", str(folder / "faq.tercet")]
