"""Draw ``research/figures/codes.png`` and ``negatives.png`` from ``study.json``.

python research/study_plots.py
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import paper_figures as paper
from study_rows import PARTS
from study_runs import row_results, stored_runs
from study_tables import CODES, COUNTS, Results

from tercet.evaluate.plots import COLOURS, plot_panels

FIGURES = Path(__file__).with_name("figures")


def error_bars(rows: list[dict[str, Any]]) -> list[list[float]]:
    """Distances from each R@1 to the ends of its interval, in points."""
    estimates = [row["R@1"] for row in rows]
    return [
        [100 * (each["value"] - each["low"]) for each in estimates],
        [100 * (each["high"] - each["value"]) for each in estimates],
    ]


def codes_panel(rows: Results) -> Callable[[Any], None]:
    """R@1 by m, with a line for each kind of codes."""

    def draw(axes: Any) -> None:
        for position, ((kind, title), colour) in enumerate(zip(CODES.items(), COLOURS, strict=False)):
            shift = 1.06 ** (position - len(CODES) / 2)  # or the error bars would overlap
            points = [(count, rows[name]) for count in COUNTS if (name := f"codes {kind} {count}") in rows]
            axes.errorbar(
                [shift * count for count, _ in points],
                [100 * row["R@1"]["value"] for _, row in points],
                yerr=error_bars([row for _, row in points]),
                color=colour,
                marker="o",
                capsize=3,
                label=title,
            )
        axes.set(xscale="log", xlabel="m", ylabel="R@1/10, Ubuntu IRC dev", title="codes of a context")
        axes.set_xticks(COUNTS, map(str, COUNTS))
        axes.minorticks_off()
        axes.set_ylim(bottom=66)  # room for the legend
        axes.legend(ncols=len(CODES), loc="lower center", fontsize="small", columnspacing=1)

    return draw


def negatives_panel(rows: Results) -> Callable[[Any], None]:
    """R@1 by the number of in-batch negatives."""

    def draw(axes: Any) -> None:
        points = [(count, rows[name]) for count in paper.NEGATIVES if (name := f"negatives {count}") in rows]
        axes.errorbar(
            [count for count, _ in points],
            [100 * row["R@1"]["value"] for _, row in points],
            yerr=error_bars([row for _, row in points]),
            color=COLOURS[0],
            marker="o",
            capsize=3,
            label="ours, Ubuntu IRC dev, 10 candidates",
        )
        axes.plot(
            list(paper.NEGATIVES),
            list(paper.NEGATIVES.values()),
            color=COLOURS[1],
            marker="s",
            linestyle="--",
            label="paper, ConvAI2, 20 candidates",
        )
        axes.set(xscale="log", xlabel="negatives in the batch", ylabel="R@1", title="bi-encoder")
        axes.set_xticks(list(paper.NEGATIVES), map(str, paper.NEGATIVES))
        axes.minorticks_off()
        axes.set_ylim(bottom=63)  # room for the legend
        axes.legend(loc="lower right")

    return draw


def main() -> None:
    runs = stored_runs()
    FIGURES.mkdir(exist_ok=True)
    for part, name, panel in (
        ("codes", "codes.png", codes_panel),
        ("ablations", "negatives.png", negatives_panel),
    ):
        (FIGURES / name).write_bytes(plot_panels(panel(row_results(PARTS[part](), runs))))
        print(f"wrote {FIGURES / name}")


if __name__ == "__main__":
    main()
