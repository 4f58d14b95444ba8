"""Draw the quality of the three scorers against their latency.

tercet bench -o bench
python research/quality_latency.py bench/bench.json docs/quality-latency.png

The times come from ``tercet bench``, the quality of trained models from ``study.json``.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

from study_rows import rows_by_name
from study_runs import row_results, stored_runs

from tercet.evaluate.plots import COLOURS, plot_panels
from tercet.files.structured import read_json

ROWS = {
    "bi": "ubuntu bi",
    **{f"poly {codes}": f"codes learnt {codes}" for codes in (16, 64, 360)},
    "cross": "ubuntu cross",
}
"""Names of ``tercet bench`` to rows of the study."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path, help="bench.json of tercet bench")
    parser.add_argument("out", type=Path, help="the PNG to write")
    options = parser.parse_args()
    known = rows_by_name()
    study = row_results([known[row] for row in ROWS.values()], stored_runs())
    recalls = {name: [100 * value for value in study[row]["each"]] for name, row in ROWS.items()}
    lines = [line for line in read_json(options.bench)["lines"] if line["what"].startswith("one context")]
    measurements = dict.fromkeys((line["what"], line["device"]) for line in lines)
    panels = [
        panel([line for line in lines if (line["what"], line["device"]) == measurement], recalls)
        for measurement in measurements
    ]
    options.out.write_bytes(plot_panels(*panels))
    print(f"wrote {options.out}")


def panel(lines: list[dict[str, Any]], recalls: dict[str, list[float]]) -> Callable[[Any], None]:
    """The scorers at one number of candidates: every seed, and their mean."""
    times = {line["name"]: 1000 * median(line["seconds"]) for line in lines}

    def draw(axes: Any) -> None:
        for (name, values), colour in zip(recalls.items(), COLOURS, strict=False):
            time = times[name]
            axes.plot([time] * len(values), values, "o", color=colour, alpha=0.35, markersize=4)
            axes.plot(time, mean(values), "D", color=colour, markersize=7)
            axes.annotate(name, (time, mean(values)), xytext=(8, 2), textcoords="offset points")
        axes.set(
            xscale="log",
            xlabel="ms to answer one context",
            ylabel="R@1/10, Ubuntu IRC dev",
            title=f"{lines[0]['what']}, {lines[0]['device']}",
        )
        axes.margins(x=0.3, y=0.2)

    return draw


if __name__ == "__main__":
    main()
