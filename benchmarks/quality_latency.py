"""Quality against time of the three scorers, as a picture.

tercet bench -o bench
python benchmarks/quality_latency.py bench/bench.json docs/quality-latency.png

The times are those of ``tercet bench``, what trained models reach is the study's (``study_kept.py``).
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

from study_kept import figures, kept_runs
from study_rows import rows_by_name

from tercet.evaluate.plots import COLOURS, drawn

ROWS = {
    "bi": "ubuntu bi",
    **{f"poly {codes}": f"codes learnt {codes}" for codes in (16, 64, 360)},
    "cross": "ubuntu cross",
}
"""Of ``tercet bench`` to the study's."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    lines = json.loads(options.bench.read_text())["lines"]
    known = rows_by_name()
    study = figures([known[row] for row in ROWS.values()], kept_runs())
    reached = {name: [100 * value for value in study[row]["each"]] for name, row in ROWS.items()}
    asked = [line for line in lines if line["what"].startswith("one context")]
    panels = dict.fromkeys((line["what"], line["device"]) for line in asked)
    options.out.write_bytes(drawn(*(panel(asked, reached, *each) for each in panels)))
    print(f"{options.out} is drawn")


def panel(
    lines: list[dict[str, Any]], reached: dict[str, list[float]], what: str, device: str
) -> Callable[[Any], None]:
    """The scorers at one number of candidates: every seed, and their mean."""
    times = {
        line["name"]: 1000 * median(line["seconds"])
        for line in lines
        if (line["what"], line["device"]) == (what, device)
    }

    def draw(axes: Any) -> None:
        for (name, seeds), colour in zip(reached.items(), COLOURS, strict=False):
            at = times[name]
            axes.plot([at] * len(seeds), seeds, "o", color=colour, alpha=0.35, markersize=4)
            axes.plot(at, mean(seeds), "D", color=colour, markersize=7)
            axes.annotate(name, (at, mean(seeds)), xytext=(8, 2), textcoords="offset points")
        axes.set(
            xscale="log",
            xlabel="ms to answer one context",
            ylabel="R@1/10, Ubuntu IRC dev",
            title=f"{what}, {device}",
        )
        axes.margins(x=0.3, y=0.2)

    return draw


if __name__ == "__main__":
    main()
