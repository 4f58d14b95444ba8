"""Tables as JSON for programs and as an HTML page for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tercet.evaluate.environment import environment
from tercet.evaluate.plots import task_plots
from tercet.evaluate.results import Rankings
from tercet.evaluate.run import Row, Table
from tercet.evaluate.significance import Difference
from tercet.files.atomic import new_folder
from tercet.files.structured import write_json
from tercet.inputs import shortened
from tercet.pages.render import png_url, render
from tercet.records import as_text

MAX_CHARACTERS = 600
"""Longer texts are shortened on the page."""
SMALLEST_P = 0.001
"""Smaller p-values are not shown in full."""


def write_report(tables: Sequence[Table], out: Path, *, settings: dict[str, Any]) -> None:
    """Write a folder with ``results.json``, ``report.html`` and, for retrieval, run files for trec_eval."""
    found = environment()
    with new_folder(out) as folder:
        write_json(folder / "results.json", as_json(tables) | {"settings": settings, "environment": found})
        (folder / "report.html").write_text(page(tables, found), encoding="utf-8")
        for table in tables:
            for row in table.rows:
                _write_run_files(table, row, folder)


def as_json(tables: Sequence[Table]) -> dict[str, Any]:
    """Every number of the tables."""
    return {"tasks": [table_json(table) for table in tables]}


def table_json(table: Table) -> dict[str, Any]:
    """Every number of one table."""
    return {
        "task": table.task,
        "cases": table.rows[0].first.cases,
        "sampled_from": table.sampled_from,
        "notes": list(table.notes),
        "skipped": dict(table.skipped),
        "rows": [_row_json(row, table.verdicts.get(row.label)) for row in table.rows],
    }


def page(tables: Sequence[Table], environment: dict[str, Any]) -> str:
    """The HTML page of all tables."""
    return render(
        "report",
        reference=tables[0].rows[0].label,
        tasks=[_task(table) for table in tables],
        environment=environment,
    )


def percent(row: Row, name: str) -> str:
    """A metric as a percentage with its interval and, for several seeds, the standard deviation."""
    found, spread = row.estimates[name], row.seed_spread(name)
    deviation = "" if spread is None else f" ± {100 * spread.deviation:.1f}"
    return f"{100 * found.value:.2f}{deviation} ({100 * found.low:.1f}-{100 * found.high:.1f})"


def against(gap: Difference) -> str:
    """A difference in percentage points, its verdict and its p-value."""
    p = f"p {gap.p:.3f}" if gap.p >= SMALLEST_P else f"p < {SMALLEST_P}"
    return f"{100 * gap.value:+.2f} {gap.verdict} ({p})"


def _task(table: Table) -> dict[str, Any]:
    """What the page shows of a table."""
    metrics = list(dict.fromkeys(name for row in table.rows for name in row.estimates))
    return {
        "name": table.task,
        "size": table.size,
        "notes": table.notes,
        "headings": ["", *metrics, "ms per case", f"compared with {table.rows[0].label}"],
        "rows": [_cells(table, row, metrics) for row in table.rows],
        "plots": {title: png_url(png) for title, png in task_plots(table).items()},
        "worst": {row.label: _worst_cells(row) for row in table.rows},
    }


def _cells(table: Table, row: Row, metrics: Sequence[str]) -> list[str]:
    values = [percent(row, name) if name in row.estimates else "" for name in metrics]
    verdict = table.verdicts.get(row.label)
    return [row.label, *values, f"{row.milliseconds:.1f}", "" if verdict is None else against(verdict)]


def _worst_cells(row: Row) -> list[list[str]]:
    return [
        [shortened(text, MAX_CHARACTERS) for text in (as_text(case.context), case.wanted, case.got)]
        for case in row.first.worst()
    ]


def _row_json(row: Row, verdict: Difference | None) -> dict[str, Any]:
    return {
        "model": row.label,
        "fingerprints": [fingerprint for fingerprint in row.fingerprints if fingerprint],
        "milliseconds": row.milliseconds,
        "metrics": {
            name: found._asdict() | {"seeds": [result.sample(name).value for result in row.results]}
            for name, found in row.estimates.items()
        },
        "against_first": None if verdict is None else verdict._asdict() | {"verdict": verdict.verdict},
        "worst": [
            {"context": case.context, "wanted": case.wanted, "got": case.got} for case in row.first.worst()
        ],
    }


def _write_run_files(table: Table, row: Row, folder: Path) -> None:
    for seed, result in enumerate(row.results):
        if result.rankings:
            name = f"{_file_name(table.task)}.{_file_name(row.label)}.{seed}.run"
            (folder / name).write_text(_run_file(result.rankings, row.label), encoding="utf-8")


def _run_file(rankings: Rankings, label: str) -> str:
    """Rankings in the format of trec_eval."""
    tag = _file_name(label)
    return "".join(
        f"{query} Q0 {document} {rank} {score!r} {tag}\n"
        for query, ranking in rankings.items()
        for rank, (document, score) in enumerate(ranking.items(), start=1)
    )


def _file_name(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in label)
