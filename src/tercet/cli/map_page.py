"""Texts as points on a plane: a page to move over with the mouse, or a picture."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tercet.extras import require
from tercet.files import new_file, writing
from tercet.index.all_pairs import plane

if TYPE_CHECKING:
    from tercet.records import Floats

COLOURS = ("#3366cc", "#dc3912", "#ff9900", "#109618", "#990099", "#0099c6", "#dd4477", "#66aa00", "#b8860b")
ALONE = "#c0c0c0"
LONGEST = 160

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>A map of texts</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; color: #222; background: #fff }
canvas { border: 1px solid #ddd; width: 100%; height: 80vh; display: block }
#text { min-height: 3rem; margin-top: .6rem }
.dim { color: #777 }
</style>
<h1>COUNT texts, GROUPS groups</h1>
<p class="dim">Texts that lie close are alike as far as two directions can show it. Coloured points are in a
group; move over a point to read it.</p>
<canvas></canvas><div id="text" aria-live="polite"></div>
<script>
const points = DATA;
const canvas = document.querySelector("canvas"), shown = document.querySelector("#text");
const xs = points.map(p => p[0]), ys = points.map(p => p[1]);
const least = (a, b) => Math.min(a, b), most = (a, b) => Math.max(a, b);
const low = [xs.reduce(least), ys.reduce(least)], high = [xs.reduce(most), ys.reduce(most)];
function at(p) {
  const edge = 12, w = canvas.width - 2 * edge, h = canvas.height - 2 * edge;
  return [edge + w * (p[0] - low[0]) / (high[0] - low[0] || 1),
          edge + h * (high[1] - p[1]) / (high[1] - low[1] || 1)];
}
function draw(chosen) {
  canvas.width = canvas.clientWidth; canvas.height = canvas.clientHeight;
  const pen = canvas.getContext("2d");
  for (const p of points) {
    const [x, y] = at(p);
    pen.fillStyle = p[2]; pen.globalAlpha = p === chosen ? 1 : .75;
    pen.beginPath(); pen.arc(x, y, p === chosen ? 7 : 3.5, 0, 7); pen.fill();
  }
}
canvas.addEventListener("mousemove", event => {
  let best = null, least = 400;
  for (const p of points) {
    const [x, y] = at(p), far = (x - event.offsetX) ** 2 + (y - event.offsetY) ** 2;
    if (far < least) { least = far; best = p; }
  }
  shown.textContent = best ? best[3] : "";
  draw(best);
});
addEventListener("resize", () => draw());
draw();
</script></html>
"""


def draw_map(
    path: Path,
    vectors: "Floats",
    texts: Sequence[str],
    groups: Sequence[Sequence[int]],
    *,
    layout: str = "pca",
) -> None:
    """Write the map of vectors ``[N, D]``, those of a group in one colour."""
    colours = [ALONE] * len(texts)
    for number, members in enumerate(groups):
        for place in members:
            colours[place] = COLOURS[number % len(COLOURS)]
    places = _neighbourly(vectors) if layout == "umap" else plane(vectors)
    with new_file(path) as partial, writing(path):
        if path.suffix == ".png":
            _draw(partial, places, colours, title=f"{len(texts):,} texts, {len(groups):,} groups")
        else:
            partial.write_text(_page(places, colours, texts, len(groups)), encoding="utf-8")


def _neighbourly(vectors: "Floats") -> "Floats":
    """``[N, 2]``: neighbours stay neighbours (UMAP); the same vectors always lie in the same places."""
    umap = require("umap", extra="map", purpose="a map by neighbours")
    near = min(15, max(2, len(vectors) - 1))
    places: Floats = umap.UMAP(
        n_neighbors=near, metric="cosine", init="random" if len(vectors) < 20 else "spectral", random_state=0
    ).fit_transform(vectors)
    return places


def _page(places: "Floats", colours: Sequence[str], texts: Sequence[str], groups: int) -> str:
    points = [
        [round(float(x), 4), round(float(y), 4), colour, text[:LONGEST]]
        for (x, y), colour, text in zip(places, colours, texts, strict=True)
    ]
    data = json.dumps(points, ensure_ascii=False).replace("<", "\\u003c")  # no text may end the script
    filled = PAGE.replace("COUNT", f"{len(texts):,}").replace("GROUPS", f"{groups:,}")
    return filled.replace("DATA", data)


def _draw(file: Path, places: "Floats", colours: Sequence[str], *, title: str) -> None:
    require("matplotlib", extra="train", purpose="drawing a map as a picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    axes = figure.add_subplot(title=title)
    behind = np.argsort([colour != ALONE for colour in colours], kind="stable")  # groups are drawn last
    across, up = places[behind].T
    axes.scatter(across, up, s=9, c=[colours[place] for place in behind], alpha=0.75, linewidths=0)
    axes.set_xticks([])
    axes.set_yticks([])
    figure.savefig(file, dpi=130, format="png")
