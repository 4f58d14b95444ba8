"""Training curves as a picture."""

import json
from pathlib import Path
from typing import Any

from tercet.extras import require
from tercet.files.atomic import new_file

INK, ACCENT = "#4c566a", "#b5543c"
ENTROPY = " entropy"
"""Metrics whose names end like this share one panel."""
MARKED = 40
"""Curves with more points have no markers."""


def draw_curves(metrics: Path, out: Path) -> None:
    """Draw loss and metrics over the steps, one below the other."""
    matplotlib = require("matplotlib", extra="train", purpose="drawing curves")
    figures = require("matplotlib.figure", extra="train", purpose="drawing curves")
    rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    panels = _panels(rows)
    with matplotlib.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = figures.Figure(figsize=(7, 2.2 * len(panels)), layout="constrained")
        for axes, (title, curves) in zip(
            figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0], panels.items(), strict=True
        ):
            for (label, points), colour in zip(curves.items(), (INK, ACCENT), strict=False):
                steps, values = zip(*points, strict=True)
                marker = "o" if len(points) <= MARKED else ""
                axes.plot(steps, values, color=colour, label=label, marker=marker, markersize=3)
            axes.set_ylabel(title)
            if title == ENTROPY.strip():
                axes.set_ylim(0, 1)  # otherwise a change of 0.01 would look like a collapse
            axes.grid(alpha=0.25)
            if len(curves) > 1:
                axes.legend(frameon=False)
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)
        with new_file(out, overwrite=True) as file:
            figure.savefig(file, dpi=120, format="png")


def _panels(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """The panels: losses, the learning rate, and one for each metric or group of metrics."""
    panels = {
        "loss": {"train": _curve(rows, "loss"), "dev": _curve(rows, "eval_loss")},
        "learning rate": {"rate": _curve(rows, "learning_rate")},
    }
    measured = dict.fromkeys(name for row in rows for name in row if name.startswith("eval_"))
    for name in measured:
        title = name.removeprefix("eval_").replace("_", " ")
        if title.endswith(ENTROPY):
            panels.setdefault(ENTROPY.strip(), {})[title.removesuffix(ENTROPY)] = _curve(rows, name)
        elif title not in ("loss", "runtime"):
            panels[title] = {"dev": _curve(rows, name)}
    drawn = {title: {key: line for key, line in part.items() if line} for title, part in panels.items()}
    return {title: part for title, part in drawn.items() if part}


def _curve(rows: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(row["step"], row[name]) for row in rows if row.get(name) is not None]
