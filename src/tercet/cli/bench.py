"""``tercet bench``: how long the three scorers take on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.progress import say_if_watched
from tercet.files import check_free


def bench(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write bench.json, bench.md and bench.png there.", metavar="FOLDER"),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="The backbone of all three.", metavar="NAME")
    ] = "bi",
    size: Annotated[list[int] | None, typer.Option(min=10, help="Candidates; 1000 and 100000.")] = None,
    rounds: Annotated[int, typer.Option(min=2, help="How often each is timed.")] = 5,
    device: Annotated[list[str] | None, typer.Option(help="cpu, and cuda where there is one.")] = None,
    peers: Annotated[bool, typer.Option(help="Time sentence-transformers too, if installed.")] = True,
) -> None:
    """Time the scorers: one context against cached candidates, encoding, reading pairs again.

    Example: tercet bench --size 1000 --rounds 3
    """
    import torch

    from tercet.evaluate.bench.table import markdown, measure, write_bench

    if out is not None:
        check_free(out)
    devices = device or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    lines = measure(
        model,
        sizes=size or [1000, 100_000],
        rounds=rounds,
        devices=devices,
        peers=peers,
        tell=say_if_watched,
    )
    typer.echo(markdown(lines))
    if out is not None:
        write_bench(lines, out)
        typer.echo(f"{out}: bench.json, bench.md, bench.png")
