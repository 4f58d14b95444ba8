"""``tercet augment``: more training pairs than people have labelled."""

import typer

from tercet.cli.options import DataOption, DeviceOption, PrecisionOption
from tercet.cli.progress import report_if_terminal, step_progress
from tercet.cli.train import OutOption, RecipeArgument, SetOption, run_folder
from tercet.errors import InterruptedRunError
from tercet.extras import require_torch


def augment(
    recipe: RecipeArgument,
    data: DataOption = None,
    out: OutOption = None,
    change: SetOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
) -> None:
    """Create more training pairs, train students on them, and measure the gain (Augmented SBERT).

    The run folder caches the result of each step. The same command resumes an interrupted run; after a
    changed setting, only the steps that depend on it run again. --precision applies to labelling.

    Example: tercet augment augment-sample --set sampling.top_k=3
    """
    from tercet.data.sources import data_root
    from tercet.settings.augment import read_augment_recipe

    settings = read_augment_recipe(recipe, change or [])
    require_torch("augmentation", extra="augment")
    from tercet.augment.pipeline import Pipeline
    from tercet.augment.report import evaluate_students, write_results

    folder = run_folder(out, recipe)
    with step_progress() as reporter:
        pipeline = Pipeline(
            settings,
            folder,
            root=data_root(data),
            device=device,
            precision=precision,
            reporter=reporter,
        )
        try:
            augmented = pipeline.run()
        except InterruptedRunError as stop:
            done = str(stop).partition(":")[0]
            raise InterruptedRunError(f"{done}: run the same command again to continue") from None
    table = evaluate_students(augmented, report=report_if_terminal, device=device)
    write_results(augmented, table, settings, folder)
    verdicts = table.verdicts
    for row in table.rows:
        verdict = f", {verdicts[row.label].verdict}" if row.label in verdicts else ""
        typer.echo(
            f"{row.label}: {row.main_metric} {100 * row.estimates[row.main_metric].value:.2f}{verdict}"
        )
    typer.echo(f"{folder}: result.json, report.html")
