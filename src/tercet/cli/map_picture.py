"""A map of texts as a picture."""

import warnings
from colorsys import hls_to_rgb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.cli.map_page import NO_CLUSTER, TextMap, hue
from tercet.extras import require
from tercet.inputs import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = (0.78, 0.78, 0.78)
MAX_LABELS, MAX_TRIED, MAX_LEGEND, MAX_NAME = 24, 60, 20, 32
FONTS = ("DejaVu Sans", "Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Malgun Gothic", "AppleGothic")
"""Fonts that are tried for each character, in this order."""


def draw_picture(file: Path, drawn: TextMap) -> None:
    """Write a PNG with the names of the largest clusters and a legend."""
    require("matplotlib", extra="map", purpose="drawing a map as a picture")
    from matplotlib import font_manager, rc_context
    from matplotlib.figure import Figure

    installed = [font for font in FONTS if font in font_manager.get_font_names()]
    with (
        rc_context({"font.family": installed or ["sans-serif"]}),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        figure = Figure(figsize=(12, 8), layout="constrained")
        axes = figure.add_subplot(title=f"{drawn.title} ({drawn.layout})")
        axes.set_xticks([])
        axes.set_yticks([])
        _scatter(axes, drawn)
        _legend(figure, axes, drawn)
        _labels(figure, axes, drawn)
        figure.savefig(file, dpi=130, format="png")
    if any("missing from" in str(warning.message) for warning in caught):
        warnings.warn(
            "no installed font has all characters of the names: install Noto Sans CJK, or write an .html map",
            stacklevel=2,
        )


def _colour(cluster: int) -> tuple[float, float, float]:
    return GREY if cluster == NO_CLUSTER else hls_to_rgb(hue(cluster) / 360, 0.42, 0.65)


def _scatter(axes: "Axes", drawn: TextMap) -> None:
    numbers = np.array(drawn.cluster_of)
    order = np.argsort(numbers != NO_CLUSTER, kind="stable")  # clusters on top
    size = float(np.clip(6000 / len(numbers), 7, 50))
    x, y = drawn.points[order].T
    axes.scatter(x, y, s=size, c=[_colour(each) for each in numbers[order]], alpha=0.7, linewidths=0)


def _legend(figure: "Figure", axes: "Axes", drawn: TextMap) -> None:
    """The largest clusters with their sizes, beside the map."""
    for number, name in enumerate(drawn.names[:MAX_LEGEND]):
        label = f"{_cut(name)} ({len(drawn.clusters[number]):,})"
        axes.scatter([], [], s=40, color=[_colour(number)], label=label)
    more = len(drawn.clusters) - MAX_LEGEND
    if more > 0:
        axes.scatter([], [], s=0, label=f"and {more:,} smaller clusters")
    if drawn.clusters:
        figure.legend(loc="outside right upper", frameon=False, fontsize="small")


def _labels(figure: "Figure", axes: "Axes", drawn: TextMap) -> None:
    """Write the names of the largest clusters at their centres, where they overlap no larger one."""
    from matplotlib.patheffects import withStroke

    figure.draw_without_rendering()  # lays out the axes, so that the sizes of labels are known
    taken: list[Any] = []
    for name, (x, y) in list(zip(drawn.names, drawn.centres, strict=True))[:MAX_TRIED]:
        if len(taken) == MAX_LABELS:
            break
        side = "left" if x < 0.15 else "right" if x > 0.85 else "center"  # stays inside the frame
        label = axes.text(x, y + 0.01, _cut(name), ha=side, va="bottom", fontsize="small", weight="bold")
        label.set_path_effects([withStroke(linewidth=3, foreground="white")])
        label.set_in_layout(False)
        box = label.get_window_extent()
        if any(box.overlaps(other) for other in taken) or not _inside(box, axes.bbox):
            label.remove()
        else:
            taken.append(box)


def _inside(box: Any, frame: Any) -> bool:
    return bool(box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1)


def _cut(name: str) -> str:
    return shortened(name, MAX_NAME).replace("$", r"\$")
