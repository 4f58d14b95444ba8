"""``tercet train``: a recipe to a model."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.options import DataOption, DeviceOption
from tercet.cli.progress import step_progress
from tercet.extras import require_torch
from tercet.files.atomic import writing
from tercet.files.structured import read_toml
from tercet.settings.shipped import shipped, shipped_path

if TYPE_CHECKING:
    from tercet.settings.recipe import Recipe


def _readable(recipe: Path) -> Path:
    """The file of a path or of an installed recipe.

    An invalid recipe is reported before torch is imported, which takes seconds.
    """
    if not recipe.exists() or (recipe.is_dir() and str(recipe) in shipped("recipes")):
        recipe = shipped_path("recipes", str(recipe))
    if recipe.is_file() or recipe.is_dir() or not recipe.exists():  # a pipe can be read only once
        read_toml(recipe)
    return recipe


RecipeArgument = Annotated[
    Path,
    typer.Argument(
        help='The recipe: a TOML file, or a name of "tercet recipes".', metavar="RECIPE", callback=_readable
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The run folder. Default: runs/NAME-OF-RECIPE.", metavar="FOLDER"),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting of the recipe; repeatable.", metavar="TABLE.KEY=VALUE"),
]


def train(
    recipe: RecipeArgument,
    data: DataOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    change: SetOption = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Random seed. Default: the recipe's."),
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Train a model from a recipe.

    The run folder contains all settings, the metrics (metrics.jsonl, curves.png) and the best model. Ctrl-C
    writes a checkpoint and stops; --resume continues, also after a crash.

    Example: tercet train bi-sample --set training.epochs=2
    """
    from tercet.data.sources import data_root
    from tercet.settings.recipe import read_recipe

    settings = read_recipe(recipe, change or [])
    if seed is not None:
        settings = settings.with_seed(seed)
    run(settings, run_folder(out, recipe), root=data_root(data), resume=resume, device=device)


def run(recipe: "Recipe", folder: Path, *, root: Path | None, resume: bool, device: str | None) -> None:
    """Train by a recipe, and print the results."""
    require_torch("training", extra="train")
    from tercet.training.distributed import is_first_process
    from tercet.training.run import run_recipe

    if resume and not folder.exists():
        warnings.warn(f"--resume found no run in {folder}: a new run starts", stacklevel=1)
    with step_progress() as reporter:
        result = run_recipe(recipe, folder, root=root, resume=resume, device=device, reporter=reporter)
    if is_first_process():
        typer.echo(f"{folder}: {_summary(result)}")


def run_folder(out: Path | None, recipe: Path) -> Path:
    """The folder of a run."""
    if out is not None:
        return out
    with writing(Path("runs") / recipe.stem):
        Path("runs").mkdir(exist_ok=True)
    return Path("runs") / recipe.stem


SUMMARY = {"untrained": "dev before training", "dev": "dev after training", "test": "test"}
"""The results of a run, and what they are called."""


def _summary(result: dict[str, Any]) -> str:
    parts = [
        f"{title} {_metrics(result[name])}{_rows(result[name])}"
        for name, title in SUMMARY.items()
        if result.get(name) and _metrics(result[name])
    ]
    return "; ".join(parts) or "trained"


def _rows(measured: dict[str, float]) -> str:
    return f" ({measured['examples']:,} examples)" if "examples" in measured else ""


def _metrics(measured: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in measured.items() if name != "examples")
