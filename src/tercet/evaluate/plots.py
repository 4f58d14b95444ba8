"""Pictures of results, as PNG."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np

from tercet.evaluate.decisions import reliability
from tercet.evaluate.run import Row, Table
from tercet.extras import require

COLOURS = ("#b5543c", "#4c566a", "#5e81ac", "#a3be8c", "#b48ead", "#d08770", "#88c0d0", "#8f6b32")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}
BINS = 40


def pictures(table: Table) -> dict[str, bytes]:
    """Those that the task has something to show for, by title."""
    made: dict[str, bytes] = {}
    if "place" in table.rows[0].first.columns:
        made["The answer among the first k"] = drawn(lambda axes: _recalls(axes, table.rows))
    scored = [row for row in table.rows if len(row.first.right)]
    if scored:
        made["Scores of right and wrong candidates"] = drawn(*(_separation(row) for row in scored), width=2.6)
    sure = [row for row in table.rows if "probability" in row.first.columns]
    if sure:
        made["Probabilities, and how often they came true"] = drawn(lambda axes: _calibrations(axes, sure))
    if len(table.rows) > 1:
        made["Quality against time"] = drawn(lambda axes: _trade(axes, table))
    return made


def drawn(*panels: Callable[[Any], None], width: float = 5.0) -> bytes:
    """Panels side by side, at most four in a row."""
    matplotlib = require("matplotlib", extra="evaluate", purpose="drawing pictures")
    figures = require("matplotlib.figure", extra="evaluate", purpose="drawing pictures")
    across = min(len(panels), 4)
    down = -(-len(panels) // across)
    with matplotlib.rc_context(STYLE):
        figure = figures.Figure(figsize=(max(width * across, 4.0), 2.8 * down), layout="constrained")
        places = figure.subplots(down, across, squeeze=False).ravel()
        for axes, panel in zip(places, panels, strict=False):
            panel(axes)
        for axes in places[len(panels) :]:
            axes.set_axis_off()
        picture = BytesIO()
        figure.savefig(picture, dpi=110, format="png")
    return picture.getvalue()


def _recalls(axes: Any, rows: Sequence[Row]) -> None:
    for row, colour in zip(rows, _colours(len(rows)), strict=True):
        places = np.concatenate([each.columns["place"] for each in row.results])
        depths = np.arange(1, min(int(places.max()), 20) + 1)
        axes.plot(
            depths, [np.mean(places <= depth) for depth in depths], color=colour, label=_plain(row.label)
        )
    axes.set(xlabel="k", ylabel="share of contexts", ylim=(None, 1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)


def _separation(row: Row) -> Callable[[Any], None]:
    def draw(axes: Any) -> None:
        right, wrong = row.first.right, row.first.wrong
        edges = np.histogram_bin_edges(np.concatenate([right, wrong]), BINS)
        for scores, colour, label in ((wrong, COLOURS[1], "wrong"), (right, COLOURS[0], "right")):
            axes.hist(scores, edges, density=True, alpha=0.6, color=colour, label=label)
        axes.set(title=_plain(row.label), xlabel="score", yticks=[])
        axes.legend(frameon=False)

    return draw


def _calibrations(axes: Any, rows: Sequence[Row]) -> None:
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linestyle="--")
    for row, colour in zip(rows, _colours(len(rows)), strict=True):
        columns = row.first.columns
        told, happened, _ = reliability(columns["probability"], columns["target"])
        axes.plot(told, happened, color=colour, marker="o", markersize=3, label=_plain(row.label))
    axes.set(xlabel="probability", ylabel="share of matches")
    axes.legend(frameon=False)


def _trade(axes: Any, table: Table) -> None:
    for row, colour in zip(table.rows, _colours(len(table.rows)), strict=True):
        found = row.figures[row.main]
        around = [[found.value - found.low], [found.high - found.value]]
        axes.errorbar(row.milliseconds, found.value, yerr=around, color=colour, marker="o", capsize=2)
        axes.annotate(
            _plain(row.label), (row.milliseconds, found.value), xytext=(5, 4), textcoords="offset points"
        )
    axes.set(xscale="log", xlabel="ms for a case, every text read anew", ylabel=table.rows[0].main)
    axes.margins(x=0.2)


def _colours(count: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(count)]


def _plain(label: str) -> str:
    """Without what matplotlib takes for mathematics."""
    return label.replace("$", r"\$")
