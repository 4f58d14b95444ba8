"""A real server in a process of its own, with tiny models."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.conftest import SENTENCES, make_folder

import tercet

ADDRESS = re.compile(r"tercet serves (http://\S+)")


@dataclass
class Running:
    """A server that is ready."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def post(self, path: str, body: object = None, **options: object) -> httpx.Response:
        """Send a request with a JSON body."""
        return httpx.post(self.url + path, json=body, timeout=30, **options)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rsplit(":", 1)[1])


@contextmanager
def running(log: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[Running]:
    """Start a server on a free port, wait until it is ready, and end it."""
    import os

    line = [sys.executable, "-m", "tercet", "serve", "--port", "0", *options]
    with log.open("w") as output:
        process = subprocess.Popen(
            line, stderr=output, stdout=output, text=True, env={**os.environ, **(environment or {})}
        )
        try:
            yield Running(_address(log, process), process, log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(30)


def _address(log: Path, process: "subprocess.Popen[str]") -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = ADDRESS.search(log.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"the server did not start: {log.read_text()}")


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
