"""All measurements of ``tercet bench``, as one table."""

import resource
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tercet.evaluate.bench.rounds import Ratio, Times, in_turn, ratio
from tercet.evaluate.bench.scorers import (
    PAPER,
    PEER,
    BenchModels,
    Measurement,
    bench_models,
    encoding,
    ranking,
    reranking,
    searching,
)
from tercet.evaluate.environment import environment
from tercet.evaluate.plots import plot_panels
from tercet.files.atomic import new_folder
from tercet.files.structured import write_json

OURS, OTHERS = "#b5543c", "#9aa3b2"
"""Colours of the bars."""


class Line(NamedTuple):
    """The times of one contestant in one measurement, and its ratio to the same work by others."""

    device: str
    what: str
    name: str
    size: int
    times: Times
    against: dict[str, Ratio]
    limit: float | None = None
    """The least seconds of the work on this machine."""

    @property
    def milliseconds(self) -> float:
        """The median of the rounds."""
        return 1000 * self.times.median


def measure(
    source: str,
    *,
    sizes: Sequence[int],
    rounds: int,
    devices: Sequence[str],
    peers: bool,
    report: Callable[[str], None],
) -> list[Line]:
    """All lines of the table; the actions of one measurement are timed in interleaved rounds.

    Args:
        source: the backbone of all models.
        sizes: numbers of candidates.
        peers: also time sentence-transformers, if it is installed.
        report: receives a line about each measurement.
    """
    lines: list[Line] = []
    for device in devices:
        with bench_models(source, device=device, peers=peers) as models:
            for what, prepare in _measurements(models, sizes).items():
                report(f"{device}: {what}")
                lines += _lines(device, what, prepare, rounds=rounds)
    return lines


def markdown(lines: Sequence[Line]) -> str:
    """A Markdown table for each measurement."""
    found = environment()
    gpus = "".join(f", {gpu}" for gpu in found["gpus"])
    parts = [
        f"{found['system']}, {found['processors']} processors, {found['threads']} threads{gpus}; "
        f"torch {found['packages']['torch']}; peak memory {_peak_megabytes():,.0f} MB. "
        "Medians of interleaved rounds; brackets contain the smallest and the largest ratio. "
        "Limits follow from the measured speeds of a copy and of a float32 matrix product."
    ]
    for device, what in dict.fromkeys((line.device, line.what) for line in lines):
        per_second = what in ("encode", "rerank")
        parts.append(f"\n**{what}, {device}**\n")
        unit = "per second" if per_second else "ms"
        parts.append(f"| | {unit} | against {PEER} | against the {PAPER} | limit, {unit} | of the limit |")
        parts.append("|---|---:|---:|---:|---:|---:|")
        parts += [_row(line, per_second) for line in lines if (line.device, line.what) == (device, what)]
    return "\n".join(parts) + "\n"


def write_bench(lines: Sequence[Line], out: Path) -> None:
    """Write a folder with ``bench.json``, ``bench.md`` and ``bench.png``."""
    with new_folder(out) as folder:
        write_json(folder / "bench.json", as_json(lines))
        (folder / "bench.md").write_text(markdown(lines), encoding="utf-8")
        (folder / "bench.png").write_bytes(plot(lines))


def as_json(lines: Sequence[Line]) -> dict[str, Any]:
    """The seconds of every round."""
    return {
        "lines": [
            {
                "device": line.device,
                "what": line.what,
                "name": line.name,
                "count": line.size,
                "seconds": list(line.times.seconds),
                "estimated": line.times.estimated,
                "limit": line.limit,
                "against": {
                    name: found._asdict() | {"tie": found.tie} for name, found in line.against.items()
                },
            }
            for line in lines
        ],
        "peak_memory_mb": _peak_megabytes(),
        "environment": environment(),
    }


def plot(lines: Sequence[Line]) -> bytes:
    """A PNG of the times for one context, with a panel per number of candidates and device."""
    panels = dict.fromkeys((line.device, line.what) for line in lines if line.what.startswith("one context"))
    return plot_panels(
        *(_panel([line for line in lines if (line.device, line.what) == panel]) for panel in panels)
    )


def _measurements(models: BenchModels, sizes: Sequence[int]) -> dict[str, Callable[[], Measurement]]:
    """Every measurement by name; each is prepared when it is due, since its vectors are large."""
    found: dict[str, Callable[[], Measurement]] = {}
    for size in sizes:
        found[f"one context, {size:,} candidates"] = partial(ranking, models, size)
        if models.device.type == "cpu":
            found[f"index search, {size:,} vectors"] = partial(searching, models, size)
    return found | {"encode": partial(encoding, models), "rerank": partial(reranking, models)}


def _lines(device: str, what: str, prepare: Callable[[], Measurement], *, rounds: int) -> list[Line]:
    size, actions = prepare()
    times = in_turn(actions, rounds=rounds)
    return [
        Line(device, what, name, size, seconds, _against(name, seconds, times), actions[name].limit)
        for name, seconds in times.items()
    ]


def _against(name: str, ours: Times, times: dict[str, Times]) -> dict[str, Ratio]:
    """Our ratio to the same work by others."""
    others = {PEER: PEER} if name == "tercet" else {other: f"{name}, {other}" for other in (PEER, PAPER)}
    return {other: ratio(times[key], ours) for other, key in others.items() if key in times}


def _panel(lines: Sequence[Line]) -> Callable[[Any], None]:
    def draw(axes: Any) -> None:
        shown = list(reversed(lines))
        colours = [OTHERS if "," in line.name else OURS for line in shown]
        axes.barh([line.name for line in shown], [line.milliseconds for line in shown], color=colours)
        axes.set(xscale="log", xlabel="ms", title=f"{lines[0].what}, {lines[0].device}")

    return draw


def _row(line: Line, per_second: bool) -> str:
    value = _shown(line, line.times.median, per_second)
    note = " (estimated)" if line.times.estimated else ""
    cells = [str(line.against[other]) if other in line.against else "" for other in (PEER, PAPER)]
    limit = ["", ""]
    if line.limit is not None:
        limit = [_shown(line, line.limit, per_second), f"{line.limit / line.times.median:.0%}"]
    return f"| {line.name} | {value}{note} | {' | '.join([*cells, *limit])} |"


def _shown(line: Line, seconds: float, per_second: bool) -> str:
    return f"{line.size / seconds:,.0f}" if per_second else _rounded(1000 * seconds)


def _rounded(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.2g}"


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
