"""The study's tables and plots, from what ``study.py`` has collected.

python benchmarks/study_report.py        # draws docs/codes.png and docs/negatives.png

``results.py`` puts the tables into docs/results.md.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from study_kept import figures, kept_runs
from study_rows import AS_THEY_ARE, PARTS, plain_rows

from tercet.evaluate.plots import COLOURS, drawn

ROOT = Path(__file__).parents[1]

SETS = {
    "ubuntu": "Ubuntu IRC, 1,183 cases, 10 candidates",
    "convai2": "ConvAI2, 7,801 cases, 20 candidates",
    "self-dialogue": "Self-Dialogue, 2,565 cases, 20 candidates",
    "dailydialog": "DailyDialog, 3,000 cases, 20 candidates",
}
KINDS = {
    "bm25": "BM25",
    "untrained": "bi-encoder, untrained",
    "bi": "bi-encoder, mean",
    "poly": "poly-encoder, 64 learnt codes",
    "poly first": "poly-encoder, first 64 states",
    "bi again": "bi-encoder, trained a second time",
    "poly again": "poly-encoder, trained a second time",
    "bi 255": "bi-encoder, 255 negatives",
    "poly 255": "poly-encoder, 255 negatives",
    "bi hard": "bi-encoder, up to four mined negatives each",
    "poly hard": "poly-encoder, up to four mined negatives each",
    "bi taught": "the second bi-encoder, two more epochs with a cross-encoder as a teacher",
    "poly longer": "the second poly-encoder, two more epochs",
    "poly taught": "the second poly-encoder, two more epochs with a cross-encoder as a teacher",
    "cross": "cross-encoder",
    "cross again": "cross-encoder, trained a second time",
    "cross longer": "cross-encoder, one epoch more",
    "cross weight 1": "cross-encoder, `other_weight = 1`",
    "cross hard": "cross-encoder, up to four mined negatives each and 11 that are drawn",
}
PAPER_MAIN = {
    "ubuntu bi": "80.6 ± 0.4",
    "ubuntu poly": "81.3 ± 0.2",
    "ubuntu cross": "82.8 ± 0.3",
    "convai2 bi": "81.7 ± 0.2",
    "convai2 poly": "83.7 ± 0.2",
    "convai2 cross": "84.8 ± 0.3",
}
"""Humeau et al. (2020), table 4, BERT's own weights: ConvAI2 with the official candidates, Ubuntu v2."""
CODES = {"learnt": "learnt codes", "first": "first m", "last": "last m", "last_and_first": "last m and first"}
COUNTS = (1, 4, 16, 64, 360)
PAPER_CODES = {
    "learnt": (81.9, 83.8, 84.4, 84.9, 85.3),
    "first": (83.2, 83.4, 85.2, 86.0, 86.3),
    "last": (82.9, 82.8, 83.9, 84.9, 86.3),
    "last_and_first": (None, 82.9, 83.8, 85.0, 86.2),
}
"""Humeau et al. (2020), table 5, ConvAI2 dev."""
PAPER_NEGATIVES = {31: 81.0, 63: 81.7, 127: 82.3, 255: 83.0, 511: 83.3}
"""Table 3, ConvAI2."""
PAPER_OTHERS = {
    "reduction first": "83.3",
    "reduction mean_first 16": "82.9",
    "reduction mean_first 64": "82.7",
    "reduction mean": "83.1",
    "layers top bi": "74.2",
    "layers top four bi": "82.0",
    "layers all but embeddings bi": "83.3",
    "layers all bi": "83.0",
    "layers top cross": "80.6",
    "layers top four cross": "86.3",
    "layers all but embeddings cross": "87.3",
    "layers all cross": "86.6",
} | {f"negatives {count}": f"{value}" for count, value in PAPER_NEGATIVES.items()}
"""ConvAI2, sections 5.2 and 5.3."""

IN_MAIN = ("main", "again", "distillation", "hard", "reading")
"""Parts whose rows stand in the tables of the sets."""
SHARED = {
    "codes learnt 64",
    "codes first 64",
    "reduction mean",
    "negatives 63",
    "layers all bi",
    "layers all cross",
    "scale codes 10",
    "scale candidate 10",
    "scale score 20",
    "pretraining none bi",
    "pretraining none poly",
    "pretraining none cross",
}
"""Rows whose runs are those of the main table: alone they are no ablation."""

TEXTS = {"none": "nothing more", "dialogue": "dialogues", "text": "abstracts"}

BAR = r"\|"
"""A bar in a table's cell."""

PAPER_SBERT = {
    ("pooling, sbert-nli", "mean"): 80.78,
    ("pooling, sbert-nli", "max"): 79.07,
    ("pooling, sbert-nli", "first"): 79.80,
    ("pooling, sbert-stsb", "mean"): 87.44,
    ("pooling, sbert-stsb", "max"): 69.92,
    ("pooling, sbert-stsb", "first"): 86.62,
    ("concatenation, sbert-nli", "u, v"): 66.04,
    ("concatenation, sbert-nli", "|u − v|"): 69.78,
    ("concatenation, sbert-nli", "u ∗ v"): 70.54,
    ("concatenation, sbert-nli", "|u − v|, u ∗ v"): 78.37,
    ("concatenation, sbert-nli", "u, v, u ∗ v"): 77.44,
    ("concatenation, sbert-nli", "u, v, |u − v|"): 80.78,
    ("concatenation, sbert-nli", "u, v, |u − v|, u ∗ v"): 80.44,
}


HEAD = """## Trained on dialogues

About 1,000 held-out training lessons chose the look; the dev file was measured once a run. Mean over the
seeds; the interval is over the cases, ± over the seeds. The column "against" says by how much a row is
above others, by their names. p is of a randomisation test, case by case, on
the seeds that both rows have; cases of one dialogue are counted as if they had nothing in common, so it
is a little too small, and 0.0001 is the least it can be. No p is corrected for how many tests there are:
of twenty rows that differ in nothing, one has p < .05. Minutes are of a GPU that trained a dozen models
side by side; those of all runs kept add up to {hours:.0f} hours. `python benchmarks/study.py again
distillation --list` has the folders of second trainings and of teachers. Paper: BERT-base on test files
(Humeau et al., 2020, table 4), other data and candidates; beside Ubuntu IRC stands its Ubuntu v2. Mined
negatives have to be mined before: "What was tried", above, has the command.
"""


def sections() -> list[str]:
    """Chapters for results.md, of those parts that were run."""
    runs = kept_runs()
    main = figures([*plain_rows(), *(row for part in IN_MAIN for row in PARTS[part]())], runs)
    hours = sum(run["seconds"] or 0 for run in runs.values()) / 3600
    found = [HEAD.format(hours=hours), *(set_section(name, main) for name in SETS)]
    for part, section in (
        ("codes", code_section),
        ("others", other_section),
        ("pretraining", pretraining_section),
    ):
        rows = figures(PARTS[part](), runs)
        if rows.keys() - SHARED:
            found.append(section(rows))
    return found


def set_section(name: str, rows: dict[str, Any]) -> str:
    """The scorers on one set."""
    lines = [
        f"### {SETS[name]}\n",
        "| | name | seeds | R@1 | ± | R@5 | MRR | against | minutes | paper |",
        "|---|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    commands = []
    for kind, title in KINDS.items():
        row = rows.get(f"{name} {kind}")
        if row is None:
            continue
        seeds = "" if kind in AS_THEY_ARE else listed(row["seeds"])
        minutes = f"{mean(row['seconds']) / 60:.0f}" if row["seconds"] else ""
        theirs = f"*{PAPER_MAIN[f'{name} {kind}']}*" if f"{name} {kind}" in PAPER_MAIN else ""
        against = ", ".join(
            against_cell(gap, row, gap["row"].removeprefix(f"{name} ")) for gap in row["against"]
        )
        cells = [seeds, shown(row["R@1"]), spread(row), shown(row["R@5"]), shown(row["MRR"]), against]
        lines.append(f"| {title} | {kind} | {' | '.join([*cells, minutes, theirs])} |")
        commands.append(f"`{row['command']}`; {row['machine']}")
    return "\n".join([*lines, "", "  \n".join(commands), ""])


def listing(script: str, where: str) -> str:
    """How the commands of a table's rows are shown, and where they ran."""
    return f"`python benchmarks/{script} --list --set training.bf16=true` has the commands; {where}.\n"


def machines(rows: dict[str, Any]) -> str:
    """Where the rows of a table were trained."""
    return ", ".join(sorted({row["machine"] for row in rows.values()}))


def listed(seeds: Sequence[int]) -> str:
    """Which seeds there are."""
    return ", ".join(map(str, seeds))


def seeds_named(seeds: Sequence[int]) -> str:
    """The same in a sentence."""
    return f"seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}"


def against_cell(gap: dict[str, Any], row: dict[str, Any], other: str) -> str:
    """By how much a row is above another, and on which of its seeds if not all."""
    seeds = "" if gap["seeds"] == row["seeds"] else f", {seeds_named(gap['seeds'])}"
    return f"{100 * gap['value']:+.1f} on {other} (p {gap['p']:.4f}{seeds})"


def code_section(rows: dict[str, Any]) -> str:
    """How many codes, and of which kind."""
    usual = max((row["seeds"] for row in rows.values()), key=len)
    lines = [
        "## Context codes\n",
        "R@1 x 100 on Ubuntu IRC's dev file; in italics the paper's on ConvAI2 dev (Humeau et al., 2020, "
        f"table 5). One standard error of 1,183 cases is 1.3 points. Mean and deviation over seeds "
        f"{listed(usual)}, or over those in brackets. A star marks a difference from 64 learnt codes that "
        f"a test finds (p < .05); of {len(rows) - 1} tests, one would by chance. Contexts have at most 256 "
        "tokens, for m = 360 at most 360.\n",
        f"| m | {' | '.join(CODES.values())} |",
        f"|---|{'---:|' * len(CODES)}",
    ]
    for place, count in enumerate(COUNTS):
        cells = []
        for kind in CODES:
            row, theirs = rows.get(f"codes {kind} {count}"), PAPER_CODES[kind][place]
            ours = "" if row is None else code_cell(row, usual)
            cells.append(f"{ours} *{theirs}*" if theirs is not None else ours)
        lines.append(f"| {count} | {' | '.join(cells)} |")
    seen = "![R@1 against m](codes.png)\n\nThe picture has the seeds of the table."
    lines.append(f"\n{seen} {listing('study.py codes', machines(rows))}")
    return "\n".join(lines)


def code_cell(row: dict[str, Any], usual: list[int]) -> str:
    """R@1 over the seeds, which are named where they are not the usual ones."""
    seeds = "" if row["seeds"] == usual else f" ({listed(row['seeds'])})"
    return f"{100 * row['R@1']['value']:.1f}{star(row)}{spread(row, sign=' ± ')}{seeds}"


def other_section(rows: dict[str, Any]) -> str:
    """Reductions, negatives, layers, scales."""
    lines = [
        "## Reduction, negatives, layers, scales\n",
        "R@1 x 100 on Ubuntu IRC's dev file, each against what the recipe has, on the seeds that both have; "
        "in italics the paper's on ConvAI2 (its reductions are those of candidates and of a bi-encoder's "
        "contexts).\n",
        "| | seeds | R@1 | ± | against | paper |",
        "|---|---|---:|---:|---|---:|",
    ]
    for name, row in rows.items():
        theirs = f"*{PAPER_OTHERS[name]}*" if name in PAPER_OTHERS else ""
        against = ", ".join(f"{100 * gap['value']:+.1f} (p {gap['p']:.4f})" for gap in row["against"])
        cells = [listed(row["seeds"]), shown(row["R@1"]), spread(row), against, theirs]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    seen = "![R@1 against negatives](negatives.png)\n\nThe picture has the seeds of the table."
    lines.append(f"\n{seen} {listing('study.py others', machines(rows))}")
    return "\n".join(lines)


def pretraining_section(rows: dict[str, Any]) -> str:
    """What the encoder had read before."""
    lines = [
        "## Pre-training\n",
        "R@1 x 100 on ConvAI2's dev file, after 1.8 million words of dialogues, of abstracts, or of nothing "
        "more than MiniLM has seen. With Reddit instead of Wikipedia and books the paper gains 2.8 points "
        "(bi), 3.2 (poly 64) and 3.0 (cross) on ConvAI2's test file (table 4). Tests are on the seeds that "
        "both rows have.\n",
        "| | read before | seeds | R@1 | against |",
        "|---|---|---|---:|---|",
    ]
    for name, row in rows.items():
        _, text, kind = name.split()
        against = ", ".join(against_cell(gap, row, TEXTS[gap["row"].split()[1]]) for gap in row["against"])
        cells = [kind, TEXTS[text], listed(row["seeds"]), shown(row["R@1"]), against]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"\n{listing('study.py pretraining', machines(rows))}")
    return "\n".join(lines)


def sbert_section(tables: dict[str, dict[str, Any]]) -> str:
    """Sentence-BERT's ablations."""
    lines = [
        "## Sentence-BERT's choices\n",
        "Spearman's ρ x 100 on dev files; in italics the paper's on STSb dev (Reimers & Gurevych, 2019, "
        "table 6).\n",
        "| | | seeds | STSb dev | SICK dev | paper |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for table, rows in tables.items():
        for name, row in rows.items():
            theirs = PAPER_SBERT.get((table, name))
            paper = f"*{theirs}*" if theirs else ""
            cells = [str(row["seeds"]), shown(row["stsb-dev"]), shown(row["sick-dev"]), paper]
            lines.append(f"| {table} | {name.replace('|', BAR)} | {' | '.join(cells)} |")
    every = {name: row for rows in tables.values() for name, row in rows.items()}
    lines.append(f"\n{listing('sbert_tables.py', machines(every))}")
    return "\n".join(lines)


def shown(figure: dict[str, float]) -> str:
    """A figure with its interval."""
    return f"{100 * figure['value']:.1f} ({100 * figure['low']:.1f}-{100 * figure['high']:.1f})"


def star(row: dict[str, Any]) -> str:
    """A mark where a test finds a difference."""
    return "\\*" if any(gap["p"] < 0.05 for gap in row["against"]) else ""


def spread(row: dict[str, Any], *, sign: str = "") -> str:
    """The deviation over seeds, if there are several."""
    return "" if row["deviation"] is None else f"{sign}{100 * row['deviation']:.1f}"


def bars(rows: list[dict[str, Any]]) -> list[list[float]]:
    """What other cases would give, below and above each figure."""
    found = [row["R@1"] for row in rows]
    return [
        [100 * (each["value"] - each["low"]) for each in found],
        [100 * (each["high"] - each["value"]) for each in found],
    ]


def codes_panel(rows: dict[str, Any]) -> Callable[[Any], None]:
    """R@1 against m, a line for each kind of codes."""

    def draw(axes: Any) -> None:
        for place, ((kind, title), colour) in enumerate(zip(CODES.items(), COLOURS, strict=False)):
            beside = 1.06 ** (place - len(CODES) / 2)  # or their bars would hide each other
            found = [(count, rows.get(f"codes {kind} {count}")) for count in COUNTS]
            there = [(count, row) for count, row in found if row is not None]
            axes.errorbar(
                [beside * count for count, _ in there],
                [100 * row["R@1"]["value"] for _, row in there],
                yerr=bars([row for _, row in there]),
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


def negatives_panel(rows: dict[str, Any]) -> Callable[[Any], None]:
    """R@1 against the negatives in a batch."""

    def draw(axes: Any) -> None:
        there = [
            (count, rows[f"negatives {count}"]) for count in PAPER_NEGATIVES if f"negatives {count}" in rows
        ]
        axes.errorbar(
            [count for count, _ in there],
            [100 * row["R@1"]["value"] for _, row in there],
            yerr=bars([row for _, row in there]),
            color=COLOURS[0],
            marker="o",
            capsize=3,
            label="ours, Ubuntu IRC dev, 10 candidates",
        )
        axes.plot(
            list(PAPER_NEGATIVES),
            list(PAPER_NEGATIVES.values()),
            color=COLOURS[1],
            marker="s",
            linestyle="--",
            label="paper, ConvAI2, 20 candidates",
        )
        axes.set(xscale="log", xlabel="negatives in the batch", ylabel="R@1", title="bi-encoder")
        axes.set_xticks(list(PAPER_NEGATIVES), map(str, PAPER_NEGATIVES))
        axes.minorticks_off()
        axes.set_ylim(bottom=63)  # room for the legend
        axes.legend(loc="lower right")

    return draw


def main() -> None:
    runs = kept_runs()
    for part, name, panel in (
        ("codes", "codes.png", codes_panel),
        ("others", "negatives.png", negatives_panel),
    ):
        rows = figures(PARTS[part](), runs)
        if rows.keys() - SHARED:
            (ROOT / "docs" / name).write_bytes(drawn(panel(rows)))
            print(f"docs/{name} is drawn")


if __name__ == "__main__":
    main()
