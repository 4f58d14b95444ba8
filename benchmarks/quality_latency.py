"""Quality against time of the three scorers, as a picture.

tercet bench -o bench
python benchmarks/quality_latency.py bench/bench.json docs/quality-latency.png

The times are those of ``tercet bench``; what trained models reach stands in trained.json, with their recipes.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

from tercet.evaluate.plots import COLOURS, drawn

TRAINED = Path(__file__).with_name("trained.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    lines = json.loads(options.bench.read_text())["lines"]
    trained = json.loads(TRAINED.read_text())[0]
    asked = [line for line in lines if line["what"].startswith("one context")]
    panels = dict.fromkeys((line["what"], line["device"]) for line in asked)
    options.out.write_bytes(drawn(*(panel(asked, trained, *each) for each in panels)))
    print(f"{options.out} is drawn")


def panel(
    lines: list[dict[str, Any]], trained: dict[str, Any], what: str, device: str
) -> Callable[[Any], None]:
    """The scorers at one number of candidates: every seed, and their mean."""
    times = {
        line["name"]: 1000 * median(line["seconds"])
        for line in lines
        if (line["what"], line["device"]) == (what, device)
    }

    def draw(axes: Any) -> None:
        for row, colour in zip(trained["rows"], COLOURS, strict=False):
            at = times[row["name"]]
            axes.plot([at] * len(row["seeds"]), row["seeds"], "o", color=colour, alpha=0.35, markersize=4)
            axes.plot(at, mean(row["seeds"]), "D", color=colour, markersize=7)
            axes.annotate(row["name"], (at, mean(row["seeds"])), xytext=(8, 2), textcoords="offset points")
        axes.set(
            xscale="log",
            xlabel="ms to answer one context",
            ylabel=trained["measure"],
            title=f"{what}, {device}",
        )
        axes.margins(x=0.3, y=0.2)

    return draw


if __name__ == "__main__":
    main()
