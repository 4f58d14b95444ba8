"""Plots of results, as PNG."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np

from tercet.evaluate.binary_metrics import reliability
from tercet.evaluate.metrics import recall_at
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
MAX_K = 20


def task_plots(table: Table) -> dict[str, bytes]:
    """The plots for which a task has data, as PNG by title."""
    plots: dict[str, bytes] = {}
    if "rank" in table.rows[0].first.columns:
        plots["Recall at k"] = plot_panels(lambda axes: _recalls(axes, table.rows))
    scored = [row for row in table.rows if len(row.first.positive_scores)]
    if scored:
        plots["Scores of right and wrong candidates"] = plot_panels(*map(_histogram, scored), width=2.6)
    calibrated = [row for row in table.rows if "probability" in row.first.columns]
    if calibrated:
        plots["Calibration"] = plot_panels(lambda axes: _calibrations(axes, calibrated))
    if len(table.rows) > 1:
        plots["Quality and time"] = plot_panels(lambda axes: _quality_and_time(axes, table))
    return plots


def plot_panels(*panels: Callable[[Any], None], width: float = 5.0) -> bytes:
    """A PNG of panels side by side, at most four in a row.

    Args:
        panels: each draws on the matplotlib axes that it receives.
        width: of a panel, in inches.
    """
    matplotlib = require("matplotlib", extra="evaluate", purpose="plotting")
    figures = require("matplotlib.figure", extra="evaluate", purpose="plotting")
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE):
        figure = figures.Figure(figsize=(max(width * columns, 4.0), 2.8 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            panel(axes)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        png = BytesIO()
        figure.savefig(png, dpi=110, format="png")
    return png.getvalue()


def _recalls(axes: Any, rows: Sequence[Row]) -> None:
    for row, colour in zip(rows, _colours(len(rows)), strict=True):
        ranks = np.concatenate([result.columns["rank"] for result in row.results])
        depths = np.arange(1, min(int(ranks.max()), MAX_K) + 1)
        recalls = [recall_at(ranks, int(depth)) for depth in depths]
        axes.plot(depths, recalls, color=colour, label=_escaped(row.label))
    axes.set(xlabel="k", ylabel="recall at k", ylim=(None, 1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)


def _histogram(row: Row) -> Callable[[Any], None]:
    def draw(axes: Any) -> None:
        right, wrong = row.first.positive_scores, row.first.negative_scores
        edges = np.histogram_bin_edges(np.concatenate([right, wrong]), BINS)
        for scores, colour, label in ((wrong, COLOURS[1], "wrong"), (right, COLOURS[0], "right")):
            axes.hist(scores, edges, density=True, alpha=0.6, color=colour, label=label)
        axes.set(title=_escaped(row.label), xlabel="score", yticks=[])
        axes.legend(frameon=False)

    return draw


def _calibrations(axes: Any, rows: Sequence[Row]) -> None:
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linestyle="--")
    for row, colour in zip(rows, _colours(len(rows)), strict=True):
        columns = row.first.columns
        found = reliability(columns["probability"], columns["target"])
        label = _escaped(row.label)
        axes.plot(found.probability, found.match_share, color=colour, marker="o", markersize=3, label=label)
    axes.set(xlabel="probability", ylabel="share of matches")
    axes.legend(frameon=False)


def _quality_and_time(axes: Any, table: Table) -> None:
    for row, colour in zip(table.rows, _colours(len(table.rows)), strict=True):
        found = row.estimates[row.main_metric]
        error = [[found.value - found.low], [found.high - found.value]]
        axes.errorbar(row.milliseconds, found.value, yerr=error, color=colour, marker="o", capsize=2)
        point = row.milliseconds, found.value
        axes.annotate(_escaped(row.label), point, xytext=(5, 4), textcoords="offset points")
    axes.set(xscale="log", xlabel="ms per case, encoding included", ylabel=table.rows[0].main_metric)
    axes.margins(x=0.2)


def _colours(count: int) -> list[str]:
    return [COLOURS[position % len(COLOURS)] for position in range(count)]


def _escaped(label: str) -> str:
    """The label as matplotlib shows it literally: dollar signs would mark mathematics."""
    return label.replace("$", r"\$")
