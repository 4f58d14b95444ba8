"""``tercet augment``: more training pairs than people have labelled."""

from typing import cast

import typer

from tercet.cli.options import PrecisionOption
from tercet.cli.progress import say_if_watched, step_progress
from tercet.cli.train import DataOption, DeviceOption, OutOption, RecipeArgument, SetOption, run_folder
from tercet.config import PRECISIONS, Precision
from tercet.inputs import check_choice


def augment(
    recipe: RecipeArgument,
    data: DataOption = None,
    out: OutOption = None,
    change: SetOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
) -> None:
    """Grow training data as a recipe says, train students on it, and measure what that gained.

    Each step's file is kept in the folder and used again while what it was made from is the same: a run
    that was killed goes on, and a changed setting makes anew only what comes after it. --precision is that
    of labelling.

    Example: tercet augment recipes/augment-stsb.toml --set sampling.top_k=3
    """
    check_choice("precision", precision, PRECISIONS)
    from tercet.augment.pipeline import Pipeline
    from tercet.augment.recipe import read_augment_recipe
    from tercet.augment.report import measured, write_results
    from tercet.data.sources import data_root

    read = read_augment_recipe(recipe, change or [])
    folder = run_folder(out, recipe)
    with step_progress() as teller:
        pipeline = Pipeline(
            read,
            folder,
            root=data_root(data),
            device=device,
            precision=cast("Precision", precision),
            teller=teller,
        )
        made = pipeline.run()
    table = measured(made, tell=say_if_watched, device=device)
    write_results(made, table, read, folder)
    verdicts = table.verdicts
    for row in table.rows:
        verdict = f", {verdicts[row.label].verdict}" if row.label in verdicts else ""
        typer.echo(f"{row.label}: {row.main} {100 * row.figures[row.main].value:.2f}{verdict}")
    typer.echo(f"{folder}: result.json, report.html")
