"""``tercet bench``: how fast the three scorers are on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.progress import report_if_terminal
from tercet.extras import require_torch
from tercet.files.atomic import check_free

MAX_CANDIDATES = 10_000_000
"""The vectors of this many, of 384 numbers, take 15 GB."""


def bench(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write bench.json, bench.md and bench.png to this folder.", metavar="FOLDER"
        ),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Backbone of the three scorers.", metavar="NAME")
    ] = "bi",
    size: Annotated[
        list[int] | None,
        typer.Option(
            min=10,
            max=MAX_CANDIDATES,
            help="Number of candidates; repeatable.",
            show_default="1000 and 100000",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=2, help="Number of timed rounds.")] = 5,
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="Device, such as cpu or cuda:0; repeatable.", show_default="cpu, and cuda if available"
        ),
    ] = None,
    peers: Annotated[bool, typer.Option(help="Also time sentence-transformers, if installed.")] = True,
) -> None:
    """Measure latency and throughput: ranking cached candidates, encoding, reranking.

    Example: tercet bench --size 1000 --rounds 3
    """
    if out is not None:
        check_free(out)
    require_torch("the benchmark")
    import torch

    from tercet.evaluate.bench.table import markdown, measure, write_bench

    devices = device or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    lines = measure(
        model,
        sizes=size or [1000, 100_000],
        rounds=rounds,
        devices=devices,
        peers=peers,
        report=report_if_terminal,
    )
    typer.echo(markdown(lines))
    if out is not None:
        write_bench(lines, out)
        typer.echo(f"{out}: bench.json, bench.md, bench.png")
