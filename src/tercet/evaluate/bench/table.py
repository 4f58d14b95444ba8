"""Everything that ``tercet bench`` measures, as one table."""

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tercet.evaluate.bench.rounds import Ratio, Times, in_turn, ratio
from tercet.evaluate.bench.scorers import PEER, answering, contestants, encoding, reranking, searching
from tercet.evaluate.plots import drawn
from tercet.files import new_folder, write_json
from tercet.runtime.environment import environment

PAPER = "paper's formula"


class Line(NamedTuple):
    """One time of one contestant."""

    device: str
    what: str
    name: str
    size: int
    times: Times
    against: dict[str, Ratio]

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
    tell: Callable[[str], None],
) -> list[Line]:
    """All lines of the table; what is compared is timed in turn."""
    lines: list[Line] = []
    for device in devices:
        with contestants(source, device=device, peers=peers) as models:
            for size in sizes:
                tell(f"{device}: one context, {size:,} candidates")
                times = in_turn(answering(models, size), rounds=rounds)
                lines += _lines(device, f"one context, {size:,} candidates", size, times)
                if device == "cpu":
                    tell(f"{device}: index of {size:,} vectors")
                    times = in_turn(searching(models, size), rounds=rounds)
                    lines += _lines(device, f"index search, {size:,} vectors", size, times)
            for what, (count, actions) in {"encode": encoding(models), "rerank": reranking(models)}.items():
                tell(f"{device}: {what}")
                lines += _lines(device, what, count, in_turn(actions, rounds=rounds))
    return lines


def _lines(device: str, what: str, count: int, times: dict[str, Times]) -> list[Line]:
    return [
        Line(device, what, name, count, taken, _against(name, taken, times)) for name, taken in times.items()
    ]


def _against(name: str, ours: Times, times: dict[str, Times]) -> dict[str, Ratio]:
    """Ours against the same by others."""
    others = {other: f"{name}, {other}" for other in (PEER, PAPER)}
    if name == "tercet":
        others = {PEER: PEER}
    return {other: ratio(times[key], ours) for other, key in others.items() if key in times}


def markdown(lines: Sequence[Line]) -> str:
    """A table for each thing that was timed."""
    facts = environment()
    parts = [
        f"{facts['system']}, {facts['processors']} processors, {facts['threads']} threads"
        + "".join(f", {gpu}" for gpu in facts["gpus"])
        + f"; torch {facts['packages']['torch']}; peak memory {_peak():,.0f} MB. "
        "Medians of interleaved rounds; in brackets the least and the most."
    ]
    for device, what in dict.fromkeys((line.device, line.what) for line in lines):
        rate = what in ("encode", "rerank")
        parts.append(f"\n**{what}, {device}**\n")
        parts.append(f"| | {'a second' if rate else 'ms'} | against {PEER} | against the {PAPER} |")
        parts.append("|---|---:|---:|---:|")
        parts += [_row(line, rate) for line in lines if (line.device, line.what) == (device, what)]
    return "\n".join(parts) + "\n"


def write_bench(lines: Sequence[Line], out: Path) -> None:
    """Fill a folder: ``bench.json``, ``bench.md`` and ``bench.png``."""
    with new_folder(out) as folder:
        write_json(folder / "bench.json", as_json(lines))
        (folder / "bench.md").write_text(markdown(lines), encoding="utf-8")
        (folder / "bench.png").write_bytes(picture(lines))


def as_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Every round."""
    return {
        "lines": [
            {
                "device": line.device,
                "what": line.what,
                "name": line.name,
                "count": line.size,
                "seconds": list(line.times.seconds),
                "estimated": line.times.estimated,
                "against": {name: each._asdict() | {"tie": each.tie} for name, each in line.against.items()},
            }
            for line in lines
        ],
        "peak_memory_mb": _peak(),
        "environment": environment(),
    }


def picture(lines: Sequence[Line]) -> bytes:
    """The time to answer a context, a panel for each number of candidates and device."""
    panels = dict.fromkeys((line.device, line.what) for line in lines if line.what.startswith("one context"))
    return drawn(*(_panel([line for line in lines if (line.device, line.what) == each]) for each in panels))


def _panel(lines: Sequence[Line]) -> Callable[[Any], None]:
    def draw(axes: Any) -> None:
        shown = list(reversed(lines))
        colours = ["#b5543c" if "," not in line.name else "#9aa3b2" for line in shown]
        axes.barh([line.name for line in shown], [line.milliseconds for line in shown], color=colours)
        axes.set(xscale="log", xlabel="ms", title=f"{lines[0].what}, {lines[0].device}")

    return draw


def _row(line: Line, rate: bool) -> str:
    value = f"{line.size / line.times.median:,.0f}" if rate else _shown(line.milliseconds)
    note = " (estimated)" if line.times.estimated else ""
    cells = [str(line.against[other]) if other in line.against else "" for other in (PEER, PAPER)]
    return f"| {line.name} | {value}{note} | {' | '.join(cells)} |"


def _shown(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.2g}"


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
