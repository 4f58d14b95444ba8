"""What a run of ``tercet augment`` made, as JSON for programs and as a page for people."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.augment.gold import targets
from tercet.augment.like_gold import distance
from tercet.augment.pipeline import Made
from tercet.augment.recipe import AugmentRecipe
from tercet.augment.silver import read_silver
from tercet.augment.summary import Summary, overlaps, summary
from tercet.evaluate.named import Named
from tercet.evaluate.plots import COLOURS, drawn
from tercet.evaluate.report import STYLE, against, percent, table_json
from tercet.evaluate.run import Evaluation, Table
from tercet.evaluate.tasks.pairs import MatchTask, Pairs, SimilarityTask
from tercet.files import write_json
from tercet.runtime.environment import environment

LABELLER = "cross-encoder, which labelled"
"""Of several, the mean of what each reaches."""
BINS = 20

PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Augmented training data</title>
<style>$style</style>
<h1>Augmented training data</h1>
<p>$about</p>
<p><code>$command</code></p>
<h2>What students reach</h2>
<p class="dim">$cases test pairs; seeds: $seeds. In brackets: the interval that holds 95% of what other pairs
of the same kind would give. The difference is on the same pairs; better and worse are said only where p is
below .05.</p>
<div class="scroll"><table>$results</table></div>
<h2>Gold and silver</h2>
<div class="scroll"><table>$silver</table></div>
<p>$noise</p>
$notes
$histograms
<h2>What samplers share</h2>
<p class="dim">The share of a row's pairs that the column's sampler has made too.</p>
<div class="scroll"><table>$overlap</table></div>
<h2>Examples</h2>
$examples
<h2>Where this comes from</h2>
<table>$facts</table>
</html>
""")


def measured(made: Made, *, tell: Callable[[str], None] = lambda _: None, device: str | None = None) -> Table:
    """The students, and the labeller as an upper bound, on the test pairs."""
    pairs = Pairs.of(made.gold.test)
    task: MatchTask | SimilarityTask
    if len(np.unique(pairs.targets)) == 2:  # matches and others, whatever their numbers
        matches = (pairs.targets == pairs.targets.max()).astype(np.float64)
        task = MatchTask("test", Pairs(pairs.contexts, pairs.candidates, matches))
    else:
        task = SimilarityTask("test", pairs)
    rows = [Named(name, tuple(map(str, models))) for name, models in made.students.items()]
    if made.labellers:
        rows.append(Named(LABELLER, tuple(map(str, made.labellers))))
    return Evaluation(rows, tell=tell, device=device).table(task)


def write_results(made: Made, table: Table, recipe: AugmentRecipe, folder: Path) -> dict[str, Any]:
    """Write ``result.json`` and ``report.html``, and give what the former holds."""
    silver = {name: summary(read_silver(file), made.scores) for name, file in made.silver.items()}
    facts = environment()
    result = {
        "results": table_json(table),
        "silver": silver_facts(made, silver),
        "noise": None if made.noise is None else asdict(made.noise),
        "overlap": overlaps(silver),
        "notes": made.notes,
        "recipe": recipe.resolved(),
        "environment": facts,
    }
    write_json(folder / "result.json", result)
    (folder / "report.html").write_text(page(made, table, silver, recipe, facts), encoding="utf-8")
    return result


def silver_facts(made: Made, silver: Mapping[str, Summary]) -> dict[str, dict[str, float]]:
    """How many pairs there are, and how far their scores are from gold's."""
    gold = made.gold.scores()
    return {
        name: {
            "pairs": len(each.scores),
            "mean score": float(each.scores.mean()),
            "distance from gold": distance(each.scores, gold),
        }
        for name, each in silver.items()
    }


def page(
    made: Made,
    table: Table,
    silver: Mapping[str, Summary],
    recipe: AugmentRecipe,
    facts: Mapping[str, Any],
) -> str:
    """The whole page; every text in it is escaped."""
    shown = {name: value for name, value in facts.items() if name not in ("command", "packages")}
    shown |= facts["packages"]
    return PAGE.substitute(
        style=STYLE,
        about=escape(recipe.about),
        command=escape(" ".join(facts["command"])),
        cases=f"{table.rows[0].first.cases:,}",
        seeds=recipe.learning.seeds,
        results=_results(table),
        silver=_silver(made, silver),
        noise=escape(_noise(made)),
        histograms=_histograms(made, silver),
        overlap=_overlap(overlaps(silver)),
        examples="".join(_examples(name, each) for name, each in silver.items()),
        notes="".join(f"<p>{escape(note)}</p>" for note in made.notes),
        facts="".join(f"<tr><td>{escape(name)}<td>{escape(str(value))}" for name, value in shown.items()),
    )


def _results(table: Table) -> str:
    main, *others = table.rows[0].figures
    verdicts = table.verdicts
    head = [main, f"against {table.rows[0].label}", *others]
    body = "".join(
        f"<tr><td>{escape(row.label)}<td>{percent(row, main)}"
        f"<td>{against(verdicts[row.label]) if row.label in verdicts else ''}"
        + "".join(f"<td>{percent(row, name) if name in row.figures else ''}" for name in others)
        for row in table.rows
    )
    return f"<tr><th>{''.join(f'<th>{escape(name)}' for name in head)}{body}"


def _silver(made: Made, silver: Mapping[str, Summary]) -> str:
    gold = made.gold.scores()
    head = "<tr><th><th>pairs<th>mean score<th>distance from gold's scores"
    rows = "".join(
        f"<tr><td>{escape(name)}<td>{each['pairs']:,}<td>{each['mean score']:.3f}"
        f"<td>{each['distance from gold']:.3f}"
        for name, each in silver_facts(made, silver).items()
    )
    return f"{head}<tr><td>gold<td>{len(gold):,}<td>{gold.mean():.3f}<td>{rows}"


def _noise(made: Made) -> str:
    if made.noise is None:
        return "Changed words keep gold's scores: nobody labelled them."
    found = (
        f"On {len(made.gold.dev):,} gold pairs of the dev data, which also chose the labeller, the "
        f"labels are off by {made.noise.mean_error:.3f} on average (of "
        f"{made.scores.highest - made.scores.lowest:g}); correlation {made.noise.correlation:.3f}."
    )
    if made.noise.wrong is None:
        return found
    share = f"{100 * made.noise.wrong:.1f}%"
    return f"{found} At the threshold {made.noise.threshold:.3f}, {share} fall on the wrong side."


def _histograms(made: Made, silver: Mapping[str, Summary]) -> str:
    edges = np.linspace(made.scores.lowest, made.scores.highest, BINS + 1)

    def panel(name: str, scores: NDArray[np.float64], colour: str) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            axes.hist(scores, edges, density=True, color=colour, alpha=0.8)
            axes.set(title=name, xlabel="score", yticks=[])

        return draw

    panels = [panel("gold", targets(made.gold.train), COLOURS[0])]
    panels += [panel(name, each.scores, COLOURS[2]) for name, each in silver.items()]
    picture = b64encode(drawn(*panels, width=2.6)).decode()
    return f'<img alt="How scores are spread" src="data:image/png;base64,{picture}">'


def _overlap(shares: Mapping[str, Mapping[str, float]]) -> str:
    head = "<tr><th>" + "".join(f"<th>{escape(name)}" for name in shares)
    return head + "".join(
        f"<tr><td>{escape(name)}"
        + "".join(f"<td>{100 * row[other]:.1f}%" if other in row else "<td>" for other in shares)
        for name, row in shares.items()
    )


def _examples(name: str, found: Summary) -> str:
    body = "".join(
        f"<tr><td>{escape(band) if place == 0 else ''}<td>{row.score:.2f}<td>{escape(row.context)}"
        f"<td>{escape(row.candidate)}"
        for band, rows in found.examples.items()
        for place, row in enumerate(rows)
    )
    return f"<details><summary>{escape(name)}</summary><table class=texts>{body}</table></details>"
