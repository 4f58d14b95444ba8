"""The Markdown tables of the study, from ``study.json`` and ``sbert_tables.json``.

``results.py`` puts them into docs/results.md and research/notes.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

import paper_figures as paper
from study_groups import p_text, seed_list
from study_rows import BASELINES, PARTS, baseline_rows
from study_runs import Runs, row_results

SETS = {
    "ubuntu": "Ubuntu IRC, 1,183 cases, 10 candidates",
    "convai2": "ConvAI2, 7,801 cases, 20 candidates",
    "self-dialogue": "Self-Dialogue, 2,565 cases, 20 candidates",
    "dailydialog": "DailyDialog, 3,000 cases, 20 candidates",
}
KINDS = {
    "bm25": "BM25",
    "untrained": "bi-encoder, untrained",
    "bi": "bi-encoder",
    "poly": "poly-encoder, 64 learnt codes",
    "poly first": "poly-encoder, first 64 states",
    "bi again": "bi-encoder, second training",
    "poly again": "poly-encoder, second training",
    "bi 255": "bi-encoder, 255 negatives",
    "poly 255": "poly-encoder, 255 negatives",
    "bi hard": "bi-encoder, up to 4 mined negatives",
    "poly hard": "poly-encoder, up to 4 mined negatives",
    "bi taught": "`bi again`, two more epochs with a teacher",
    "poly longer": "`poly again`, two more epochs without a teacher",
    "poly taught": "`poly again`, two more epochs with a teacher",
    "cross": "cross-encoder",
    "cross again": "cross-encoder, second training",
    "cross longer": "cross-encoder, one more epoch",
    "cross weight 1": "cross-encoder, `cross_text_weight = 1`",
    "cross hard": "cross-encoder, up to 4 mined and 11 random negatives",
}
"""The rows of a set's table."""
SET_PARTS = ("main", "again", "distillation", "hard", "cross-text")
"""The parts of the study whose rows are in the tables of the sets."""
SUMMARY = {
    "bm25": "BM25",
    "untrained": "bi-encoder, untrained",
    "bi": "bi-encoder",
    "poly": "poly-encoder",
    "cross": "cross-encoder",
    "poly taught": "poly-encoder, distilled",
}
SUMMARY_SETS = {
    "convai2": "ConvAI2, 20",
    "ubuntu": "Ubuntu IRC, 10",
    "self-dialogue": "Self-Dialogue, 20",
    "dailydialog": "DailyDialog, 20",
}
GAPS = (("poly", "bi"), ("cross", "poly"))
"""The differences in the summary."""
CODES = {"learnt": "learnt codes", "first": "first m", "last": "last m", "last_and_first": "last m and first"}
COUNTS = (1, 4, 16, 64, 360)
PRETRAINING = {"none": "none", "dialogue": "dialogues", "text": "abstracts"}
BAR = r"\|"
"""A bar inside a table cell."""
FOR_GPU = "--set training.bf16=true"

Results = dict[str, dict[str, Any]]


def study_tables(runs: Runs) -> dict[str, str]:
    """All tables of the study by name."""
    rows = [*baseline_rows(), *(row for part in SET_PARTS for row in PARTS[part]())]
    selection = row_results(rows, runs)
    ablations = row_results(PARTS["ablations"](), runs)
    negatives = {name: row for name, row in ablations.items() if name.startswith("negatives")}
    return {
        "selection": summary_table(selection),
        **{name: set_table(name, selection) for name in SETS},
        "codes": codes_table(row_results(PARTS["codes"](), runs)),
        "negatives": ablation_table(negatives),
        "ablations": ablation_table(ablations),
        "pretraining": pretraining_table(row_results(PARTS["pretraining"](), runs)),
        "training time": f"The stored runs took {_hours(runs):.0f} hours of training.",
    }


def summary_table(rows: Results) -> str:
    """R@1 of the three scorers on the four sets, their differences, and the paper's figures."""
    lines = _heading("", *SUMMARY_SETS.values())
    for kind, title in SUMMARY.items():
        found = (rows.get(f"{name} {kind}") for name in SUMMARY_SETS)
        lines.append(_line(title, *("" if row is None else with_interval(row["R@1"]) for row in found)))
    for ours, theirs in GAPS:
        gaps = (_gap(rows[f"{name} {ours}"], f"{name} {theirs}") for name in SUMMARY_SETS)
        lines.append(_line(f"{ours} − {theirs}", *gaps))
    for kind in ("bi", "poly", "cross"):
        lines.append(_line(f"*{kind}, BERT-base*", *(_published(f"{name} {kind}") for name in SUMMARY_SETS)))
    return "\n".join([*lines, "", _recipe_command(rows)])


def set_table(name: str, rows: Results) -> str:
    """All rows of one set, and the command of each."""
    found = {kind: row for kind in KINDS if (row := rows.get(f"{name} {kind}")) is not None}
    metrics = ("R@1", "±", "R@5", "MRR")
    lines = _heading("", "name", "seeds", *metrics, "compared with", "minutes", "paper", left=(1, 2, 7))
    for kind, row in found.items():
        seeds = "" if kind in BASELINES else _seeds(row)
        minutes = f"{mean(row['seconds']) / 60:.0f}" if row["seconds"] else ""
        gaps = ", ".join(gap_cell(gap, row, gap["row"].removeprefix(f"{name} ")) for gap in row["against"])
        values = [deviation(row) if metric == "±" else with_interval(row[metric]) for metric in metrics]
        published = _published(f"{name} {kind}")
        lines.append(_line(KINDS[kind], kind, seeds, *values, gaps, minutes, published))
    commands = [f"- {kind}: `{row['command']}` ({row['machine']})" for kind, row in found.items()]
    return "\n".join([*lines, "", *commands])


def codes_table(rows: Results) -> str:
    """R@1 by number and kind of codes."""
    usual = max((row["seeds"] for row in rows.values()), key=len)
    seeds = ", ".join(map(str, usual))
    lines = [f"Mean ± standard deviation over seeds {seeds}, or over the seeds in brackets.\n"]
    lines += _heading("m", *CODES.values())
    for count in COUNTS:
        cells = []
        for kind in CODES:
            row, published = rows.get(f"codes {kind} {count}"), paper.CODES[kind].get(count)
            ours = "" if row is None else code_cell(row, usual)
            cells.append(f"{ours} *{published}*" if published is not None else ours)
        lines.append(_line(str(count), *cells))
    return "\n".join([*lines, "", _listing("study.py codes", rows.values())])


def code_cell(row: dict[str, Any], usual: list[int]) -> str:
    """R@1 over the seeds, which are listed if they are not the usual ones."""
    seeds = "" if row["seeds"] == usual else f" ({_seeds(row)})"
    spread = f" ± {deviation(row)}" if deviation(row) else ""
    return f"{100 * row['R@1']['value']:.1f}{star(row)}{spread}{seeds}"


def ablation_table(rows: Results) -> str:
    """Reductions, negatives, layers and scales."""
    lines = _heading("", "seeds", "R@1", "±", "compared with the recipe", "paper", left=(1, 4))
    for name, row in rows.items():
        published = f"*{paper.ABLATIONS[name]}*" if name in paper.ABLATIONS else ""
        gaps = ", ".join(f"{100 * gap['value']:+.1f} ({p_text(gap['p'])})" for gap in row["against"])
        cells = [_seeds(row), with_interval(row["R@1"]), deviation(row), gaps, published]
        lines.append(_line(name.replace("_", " "), *cells))
    return "\n".join([*lines, "", _listing("study.py ablations", rows.values())])


def pretraining_table(rows: Results) -> str:
    """The scorers after further pre-training."""
    lines = _heading("", "pre-trained on", "seeds", "R@1", "compared with", left=(1, 2, 4))
    for name, row in rows.items():
        _, text, kind = name.split()
        gaps = (gap_cell(gap, row, PRETRAINING[gap["row"].split()[1]]) for gap in row["against"])
        lines.append(_line(kind, PRETRAINING[text], _seeds(row), with_interval(row["R@1"]), ", ".join(gaps)))
    return "\n".join([*lines, "", _listing("study.py pretraining", rows.values())])


def sentence_bert_table(tables: Mapping[str, Results]) -> str:
    """The ablations of Sentence-BERT."""
    lines = _heading("", "", "seeds", "STSb dev", "SICK dev", "paper", left=(1,))
    for table, rows in tables.items():
        for name, row in rows.items():
            published = paper.SENTENCE_BERT.get((table, name))
            cells = [str(row["seeds"]), with_interval(row["stsb-dev"]), with_interval(row["sick-dev"])]
            lines.append(_line(table, name.replace("|", BAR), *cells, f"*{published}*" if published else ""))
    every = [row for rows in tables.values() for row in rows.values()]
    return "\n".join([*lines, "", _listing("sbert_tables.py", every)])


def gap_cell(gap: dict[str, Any], row: dict[str, Any], other: str) -> str:
    """The difference to another row, with the seeds that were compared if they are not all."""
    seeds = "" if gap["seeds"] == row["seeds"] else f", {seed_list(gap['seeds'])}"
    return f"{100 * gap['value']:+.1f} vs {other} ({p_text(gap['p'])}{seeds})"


def with_interval(estimate: dict[str, float]) -> str:
    """A metric with its 95% interval."""
    return f"{100 * estimate['value']:.1f} ({100 * estimate['low']:.1f}-{100 * estimate['high']:.1f})"


def star(row: dict[str, Any]) -> str:
    """A star if a test finds a difference."""
    return "\\*" if any(gap["p"] < 0.05 for gap in row["against"]) else ""


def deviation(row: dict[str, Any]) -> str:
    """The standard deviation over seeds, if there are several."""
    return "" if row["deviation"] is None else f"{100 * row['deviation']:.1f}"


def _gap(row: dict[str, Any], other: str) -> str:
    gap = next(gap for gap in row["against"] if gap["row"] == other)
    return f"{100 * gap['value']:+.1f} ({p_text(gap['p'])})"


def _published(name: str) -> str:
    return f"*{paper.SELECTION[name]}*" if name in paper.SELECTION else ""


def _recipe_command(rows: Results) -> str:
    machines = _machines(rows[f"{name} {kind}"] for name in SETS for kind in ("bi", "poly", "cross"))
    return f"`tercet train research/recipes/KIND-SET.toml {FOR_GPU} --seed S`; {machines}."


def _listing(script: str, rows: Iterable[dict[str, Any]]) -> str:
    """The command that lists the commands of a table, and the machines."""
    return f"Commands: `python research/{script} --list {FOR_GPU}`; {_machines(rows)}."


def _machines(rows: Iterable[dict[str, Any]]) -> str:
    return ", ".join(sorted({row["machine"] for row in rows}))


def _seeds(row: dict[str, Any]) -> str:
    return ", ".join(map(str, row["seeds"]))


def _hours(runs: Runs) -> float:
    return sum(run["seconds"] or 0 for run in runs.values()) / 3600


def _heading(first: str, *others: str, left: Sequence[int] = ()) -> list[str]:
    """The first two lines of a table: text columns are aligned left, others right."""
    rule = "".join("---|" if position in left else "---:|" for position in range(1, len(others) + 1))
    return [_line(first, *others), f"|---|{rule}"]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
