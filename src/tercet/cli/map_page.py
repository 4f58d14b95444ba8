"""Texts as points in a plane: an interactive page, or a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tercet.cli.map_layout import Layout, layout_points, pick_layout
from tercet.files.atomic import new_file, writing
from tercet.inputs import shortened
from tercet.pages.render import render

if TYPE_CHECKING:
    from tercet.records import Floats

MAX_TEXT = 300
MAX_LEGEND = 100
NO_CLUSTER = -1
HUE_STEP, FIRST_HUE = 137.508, 215.0
"""Hues that follow each other at the golden angle stay apart for any number of clusters."""


@dataclass(frozen=True, kw_only=True)
class TextMap:
    """Texts as points ``[N, 2]`` between 0 and 1, and the names of their clusters, largest first."""

    points: "Floats"
    texts: Sequence[str]
    clusters: Sequence[Sequence[int]]
    names: Sequence[str]
    layout: Layout

    @property
    def title(self) -> str:
        """The number of texts and clusters."""
        return f"{len(self.texts):,} texts, {len(self.clusters):,} clusters"

    @property
    def cluster_of(self) -> list[int]:
        """The cluster of each text, or ``NO_CLUSTER``."""
        numbers = [NO_CLUSTER] * len(self.texts)
        for number, members in enumerate(self.clusters):
            for position in members:
                numbers[position] = number
        return numbers

    @property
    def centres(self) -> "list[Floats]":
        """The point of each cluster that is nearest to its median: outliers do not move it."""
        return [_middle(self.points[list(members)]) for members in self.clusters]


def hue(cluster: int) -> float:
    """The hue of a cluster, in degrees."""
    return (FIRST_HUE + HUE_STEP * cluster) % 360


def make_map(
    vectors: "Floats",
    texts: Sequence[str],
    *,
    clusters: Sequence[Sequence[int]],
    names: Sequence[str],
    layout: Layout = "auto",
) -> TextMap:
    """The map of vectors ``[N, D]`` and their texts."""
    picked = pick_layout(layout, len(texts))
    points = layout_points(vectors, picked)
    return TextMap(points=points, texts=texts, clusters=clusters, names=names, layout=picked)


def draw_map(path: Path, drawn: TextMap, *, overwrite: bool = False) -> None:
    """Write the map to an .html or a .png file."""
    with new_file(path, overwrite=overwrite) as partial, writing(path):
        if path.suffix == ".png":
            from tercet.cli.map_picture import draw_picture

            draw_picture(partial, drawn)
        else:
            partial.write_text(map_page(drawn), encoding="utf-8")


def map_page(drawn: TextMap) -> str:
    """The map as an HTML page that opens offline."""
    rows = zip(drawn.points, drawn.cluster_of, drawn.texts, strict=True)
    clusters = zip(drawn.names, drawn.clusters, drawn.centres, strict=True)
    return render(
        "map",
        title=drawn.title,
        layout=drawn.layout,
        points=[[*_rounded(point), cluster, shortened(text, MAX_TEXT)] for point, cluster, text in rows],
        clusters=[
            {"name": name, "size": len(members), "centre": _rounded(centre), "hue": round(hue(number), 1)}
            for number, (name, members, centre) in enumerate(clusters)
        ],
        max_legend=MAX_LEGEND,
        max_text=MAX_TEXT,
        cut=sum(len(text) > MAX_TEXT for text in drawn.texts),
        alone=drawn.cluster_of.count(NO_CLUSTER),
    )


def _middle(points: "Floats") -> "Floats":
    """``[2]``: the one of the points ``[N, 2]`` that is nearest to their median."""
    distances = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    middle: Floats = points[distances.argmin()]
    return middle


def _rounded(point: "Floats") -> list[float]:
    return [round(float(value), 4) for value in point]
