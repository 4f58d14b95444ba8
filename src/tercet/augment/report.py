"""The results of ``tercet augment``: JSON for programs and a page for people."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.augment.gold_distribution import distance
from tercet.augment.pipeline import Augmented
from tercet.augment.silver import read_silver
from tercet.augment.summary import SilverSummary, overlaps, summarize_silver
from tercet.evaluate.environment import environment
from tercet.evaluate.model_names import ModelEntry
from tercet.evaluate.plots import COLOURS, plot_panels
from tercet.evaluate.report import against, percent, table_json
from tercet.evaluate.run import Evaluation, Table
from tercet.evaluate.tasks.pairs import MatchTask, Pairs, SimilarityTask
from tercet.files.atomic import new_file
from tercet.files.structured import write_json
from tercet.pages.render import png_url, render
from tercet.settings.augment import AugmentRecipe

LABELLER = "labeller (cross-encoder)"
"""For several labellers, the mean of their results."""
BINS = 20


def evaluate_students(
    augmented: Augmented, *, report: Callable[[str], None] = lambda _: None, device: str | None = None
) -> Table:
    """The students, and the labeller as an upper bound, on the test pairs."""
    pairs = Pairs.of(augmented.gold.test)
    task: MatchTask | SimilarityTask
    if len(np.unique(pairs.targets)) == 2:  # binary, with any two numbers
        matches = (pairs.targets == pairs.targets.max()).astype(np.float64)
        task = MatchTask("test", Pairs(pairs.contexts, pairs.candidates, matches))
    else:
        task = SimilarityTask("test", pairs)
    models = [ModelEntry(name, tuple(map(str, paths))) for name, paths in augmented.students.items()]
    if augmented.labellers:
        models.append(ModelEntry(LABELLER, tuple(map(str, augmented.labellers))))
    return Evaluation(models, report=report, device=device).table(task)


def write_results(augmented: Augmented, table: Table, recipe: AugmentRecipe, folder: Path) -> dict[str, Any]:
    """Write ``result.json`` and ``report.html``, and return the contents of the former."""
    silver = {
        name: summarize_silver(read_silver(file), augmented.scores) for name, file in augmented.silver.items()
    }
    info = environment()
    result = {
        "results": table_json(table),
        "silver": silver_statistics(augmented, silver),
        "noise": None if augmented.noise is None else asdict(augmented.noise),
        "overlap": overlaps(silver),
        "notes": augmented.notes,
        "recipe": recipe.resolved(),
        "environment": info,
    }
    write_json(folder / "result.json", result)
    with new_file(folder / "report.html", overwrite=True) as partial:
        partial.write_text(page(augmented, table, silver, recipe, info), encoding="utf-8")
    return result


def silver_statistics(
    augmented: Augmented, silver: Mapping[str, SilverSummary]
) -> dict[str, dict[str, float]]:
    """The number of pairs of each sampler, and how far their scores are from those of the gold data."""
    gold = augmented.gold.scores()
    return {
        name: {
            "pairs": len(each.scores),
            "mean score": float(each.scores.mean()),
            "distance from gold": distance(each.scores, gold),
        }
        for name, each in silver.items()
    }


def page(
    augmented: Augmented,
    table: Table,
    silver: Mapping[str, SilverSummary],
    recipe: AugmentRecipe,
    environment_info: Mapping[str, Any],
) -> str:
    """The page."""
    gold = augmented.gold.scores()
    main, *others = table.rows[0].estimates
    verdicts = table.verdicts
    return render(
        "augment",
        about=recipe.about,
        environment=environment_info,
        cases=table.rows[0].first.cases,
        seeds=recipe.students.seeds,
        metrics=[main, f"compared with {table.rows[0].label}", *others],
        results=[
            [
                row.label,
                percent(row, main),
                against(verdicts[row.label]) if row.label in verdicts else "",
                *(percent(row, name) if name in row.estimates else "" for name in others),
            ]
            for row in table.rows
        ],
        gold={"pairs": len(gold), "mean": gold.mean()},
        silver=silver_statistics(augmented, silver),
        noise=_noise(augmented),
        notes=augmented.notes,
        histograms=png_url(_histograms(augmented, silver)),
        overlap=overlaps(silver),
        examples={name: each.examples for name, each in silver.items()},
    )


def _noise(augmented: Augmented) -> str:
    noise = augmented.noise
    if noise is None:
        return "Changed words keep the gold scores; no labeller was used."
    scores = augmented.scores
    text = (
        f"On {len(augmented.gold.dev):,} gold pairs of the dev data, which also selected the labeller, the "
        f"mean absolute error of the labels is {noise.mean_error:.3f} (range "
        f"{scores.max_score - scores.min_score:g}), and their correlation with the gold scores is "
        f"{noise.correlation:.3f}."
    )
    if noise.wrong is None:
        return text
    share = f"{100 * noise.wrong:.1f}%"
    return f"{text} At the threshold {noise.threshold:.3f}, {share} of the pairs are misclassified."


def _histograms(augmented: Augmented, silver: Mapping[str, SilverSummary]) -> bytes:
    edges = np.linspace(augmented.scores.min_score, augmented.scores.max_score, BINS + 1)

    def panel(name: str, scores: NDArray[np.float64], colour: str) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            axes.hist(scores, edges, density=True, color=colour, alpha=0.8)
            axes.set(title=name, xlabel="score", yticks=[])

        return draw

    panels = [panel("gold", augmented.gold.scores(), COLOURS[0])]
    panels += [panel(name, each.scores, COLOURS[2]) for name, each in silver.items()]
    return plot_panels(*panels, width=2.6)
