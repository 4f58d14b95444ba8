"""What HTTP adds to the engine for one client: the same texts through both, in interleaved rounds."""

import argparse
import asyncio
import http.client
import json
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from machine import machine
from serve_load import OURS, PORTS, our_command, started
from texts import mixed_texts

from tercet.formats.load import load
from tercet.serve.engine import Engine
from tercet.serve.models import served


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    _, texts = mixed_texts()
    texts = texts[: options.texts]
    with tempfile.TemporaryDirectory() as folder, started({OURS: our_command()}, Path(folder)):
        engine_times, http_times = asyncio.run(measure(texts, options.rounds))
    differences = sorted(1000 * (there - here) for here, there in zip(engine_times, http_times, strict=True))
    print(machine())
    print(f"{len(texts)} texts, one at a time, {options.rounds} rounds; ms per request, median\n")
    print(f"engine {1000 * statistics.median(engine_times):.2f}")
    print(f"HTTP   {1000 * statistics.median(http_times):.2f}")
    quarter = len(differences) // 4
    print(
        f"difference {statistics.median(differences):.2f} "
        f"(half of the requests: {differences[quarter]:.2f} to {differences[-quarter]:.2f})"
    )


async def measure(texts: list[str], rounds: int) -> tuple[list[float], list[float]]:
    """The best time of each text through the engine and over HTTP."""
    engine = Engine()
    await engine.load("bi", lambda: served(load("bi")))
    found: tuple[list[list[float]], list[list[float]]] = ([], [])
    connection = http.client.HTTPConnection("127.0.0.1", PORTS[OURS])
    with closing(connection):
        for _ in range(rounds):
            rows: tuple[list[float], list[float]] = ([], [])
            for text in texts:
                began = time.perf_counter()
                await engine.run("bi", "candidate", [text])
                rows[0].append(time.perf_counter() - began)
                body = json.dumps({"input": text, "encoding_format": "base64"})
                began = time.perf_counter()
                connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
                connection.getresponse().read()
                rows[1].append(time.perf_counter() - began)
            for side, row in zip(found, rows, strict=True):
                side.append(row)
    await engine.close()
    return [min(times) for times in zip(*found[0], strict=True)], [
        min(times) for times in zip(*found[1], strict=True)
    ]


if __name__ == "__main__":
    main()
