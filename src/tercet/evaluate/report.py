"""Tables as JSON for programs and as a page for people, which opens offline."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from tercet.evaluate.plots import pictures
from tercet.evaluate.run import Row, Table
from tercet.evaluate.significance import Difference
from tercet.files import new_folder, write_json
from tercet.records import as_text
from tercet.runtime.environment import environment

LONGEST = 600
SMALLEST_SHOWN = 0.001

STYLE = """
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.4rem; }
  h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
  h3 { font-size: 1rem; } table { border-collapse: collapse; font-size: .9rem; }
  td, th { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #eee;
           font-variant-numeric: tabular-nums; }
  td:first-child, th:first-child { text-align: left; }
  td { white-space: nowrap; }
  .texts td { text-align: left; vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
  small, .dim { color: #777; } .scroll { overflow-x: auto; } img { max-width: 100%; }
  code { background: #f4f4f4; padding: .1rem .3rem; overflow-wrap: anywhere; }
  summary { cursor: pointer; margin: .3rem 0; }
"""
"""Of pages that open offline."""

PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Models on tasks</title>
<style>$style</style>
<h1>Models on tasks</h1>
<p><code>$command</code></p>
<p class="dim">In brackets: the interval that holds 95% of what other cases of the same kind would give
(bootstrap over the cases). Against $reference: the difference on the same cases, and its p by a
paired test; better and worse are said only where p is below .05.</p>
$tasks
<h2>Where this comes from</h2>
<table>$facts</table>
</html>
""")


def write_report(tables: Sequence[Table], out: Path, *, settings: dict[str, Any]) -> None:
    """Fill a folder: ``results.json``, ``report.html``, and of retrieval run files for trec_eval."""
    facts = environment()
    with new_folder(out) as folder:
        write_json(folder / "results.json", as_json(tables) | {"settings": settings, "environment": facts})
        (folder / "report.html").write_text(page(tables, facts), encoding="utf-8")
        for table in tables:
            for row in table.rows:
                for seed, result in enumerate(row.results):
                    if result.runs:
                        name = f"{_file_name(table.task)}.{_file_name(row.label)}.{seed}.run"
                        (folder / name).write_text(_run_file(result.runs, row.label), encoding="utf-8")


def as_json(tables: Sequence[Table]) -> dict[str, Any]:
    """Every number of the tables."""
    return {"tasks": [table_json(table) for table in tables]}


def page(tables: Sequence[Table], facts: dict[str, Any]) -> str:
    """The whole page; every text in it is escaped."""
    packages = facts["packages"]
    shown = {
        **{name: value for name, value in facts.items() if name not in ("command", "packages")},
        **packages,
    }
    return PAGE.substitute(
        style=STYLE,
        command=escape(" ".join(facts["command"])),
        reference=escape(tables[0].rows[0].label),
        tasks="\n".join(map(_section, tables)),
        facts="".join(f"<tr><td>{escape(name)}<td>{escape(str(value))}" for name, value in shown.items()),
    )


def percent(row: Row, name: str) -> str:
    """A measure in hundredths with its interval, and of several seeds the deviation."""
    found = row.figures[name]
    over = row.spread(name)
    deviation = "" if over is None else f" ± {100 * over.deviation:.1f}"
    return f"{100 * found.value:.2f}{deviation} ({100 * found.low:.1f}-{100 * found.high:.1f})"


def against(gap: Difference) -> str:
    """A difference in words."""
    p = f"p {gap.p:.3f}" if gap.p >= SMALLEST_SHOWN else f"p < {SMALLEST_SHOWN}"
    return f"{100 * gap.value:+.2f} {gap.verdict} ({p})"


def _section(table: Table) -> str:
    names = list(dict.fromkeys(name for row in table.rows for name in row.figures))
    verdicts = table.verdicts
    head = "".join(f"<th>{escape(name)}" for name in ["", *names, "ms a case", "against the first"])
    body = "".join(
        f"<tr><td>{escape(row.label)}"
        + "".join(f"<td>{percent(row, name) if name in row.figures else ''}" for name in names)
        + f"<td>{row.milliseconds:.1f}<td>{against(verdicts[row.label]) if row.label in verdicts else ''}"
        for row in table.rows
    )
    drawings = "".join(
        f'<h3>{title}</h3><img alt="{title}" src="data:image/png;base64,{b64encode(png).decode()}">'
        for title, png in pictures(table).items()
    )
    return (
        f"<h2>{escape(table.task)}</h2><p class=dim>{table.rows[0].first.cases:,} cases</p>"
        f"<div class=scroll><table><tr>{head}{body}</table></div>{drawings}"
        f"<h3>Where they went wrong</h3>{''.join(map(_worst, table.rows))}"
    )


def _worst(row: Row) -> str:
    cases = "".join(
        f"<tr><td>{_cut(as_text(case.context))}<td>{_cut(case.wanted)}<td>{_cut(case.got)}"
        for case in row.first.worst()
    )
    head = "<tr><th>context<th>wanted<th>got"
    return (
        f"<details><summary>{escape(row.label)}</summary><table class=texts>{head}{cases}</table></details>"
    )


def _cut(text: str) -> str:
    return escape(text if len(text) <= LONGEST else f"{text[:LONGEST]} …")


def table_json(table: Table) -> dict[str, Any]:
    verdicts = table.verdicts
    return {
        "task": table.task,
        "cases": table.rows[0].first.cases,
        "rows": [_row_json(row, verdicts.get(row.label)) for row in table.rows],
    }


def _row_json(row: Row, verdict: Difference | None) -> dict[str, Any]:
    return {
        "model": row.label,
        "fingerprints": [each for each in row.fingerprints if each],
        "milliseconds": row.milliseconds,
        "measures": {
            name: found._asdict() | {"seeds": [each.sample(name).value for each in row.results]}
            for name, found in row.figures.items()
        },
        "against_first": None if verdict is None else verdict._asdict() | {"verdict": verdict.verdict},
        "worst": [
            {"context": case.context, "wanted": case.wanted, "got": case.got} for case in row.first.worst()
        ],
    }


def _run_file(runs: Any, label: str) -> str:
    tag = _file_name(label)
    return "".join(
        f"{query} Q0 {key} {rank} {score!r} {tag}\n"
        for query, ranking in runs.items()
        for rank, (key, score) in enumerate(ranking.items(), start=1)
    )


def _file_name(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in label)
