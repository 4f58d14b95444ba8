"""``tercet train``: from a recipe to a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tercet.cli.progress import step_progress
from tercet.files import read_toml, writing


def _readable(recipe: Path) -> Path:
    """The same path; what is no recipe is said before torch is loaded, which takes seconds."""
    if recipe.is_file() or recipe.is_dir() or not recipe.exists():  # a pipe can be read once only
        read_toml(recipe)
    return recipe


RecipeArgument = Annotated[
    Path,
    typer.Argument(help="A TOML file; recipes/ has examples.", metavar="RECIPE", callback=_readable),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="The folder that data files lie under; TERCET_DATA by default.",
        metavar="FOLDER",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The run's folder; runs/NAME-OF-RECIPE by default.", metavar="FOLDER"),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on after the last checkpoint.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting of the recipe; may be repeated.", metavar="TABLE.KEY=VALUE"),
]
DeviceOption = Annotated[
    str | None, typer.Option(help="Such as cpu or cuda:0; a GPU by default, if there is one.")
]


def train(
    recipe: RecipeArgument,
    data: DataOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    change: SetOption = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Draws batches, dropout and new weights; the recipe's by default."),
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Train the model that a recipe describes.

    The run's folder gets the settings, the numbers as JSON Lines and as a picture, and the best model.
    Ctrl-C ends a run with a checkpoint, --resume goes on from there, also after a crash.

    Example: tercet train recipes/bi-sample.toml --set training.epochs=2
    """
    from tercet.data.sources import data_root
    from tercet.training.gather import is_first_process
    from tercet.training.recipe import read_recipe
    from tercet.training.run import run_recipe, with_seed

    read = read_recipe(recipe, change or [])
    if seed is not None:
        read = with_seed(read, seed)
    folder = run_folder(out, recipe)
    with step_progress() as teller:
        result = run_recipe(read, folder, root=data_root(data), resume=resume, device=device, teller=teller)
    if is_first_process():
        typer.echo(f"{folder}: {_summary(result)}")


def run_folder(out: Path | None, recipe: Path) -> Path:
    """Where a run goes."""
    if out is not None:
        return out
    with writing(Path("runs") / recipe.stem):
        Path("runs").mkdir(exist_ok=True)
    return Path("runs") / recipe.stem


def _summary(result: dict[str, Any]) -> str:
    parts = [
        f"{name} {_numbers(result[name])}"
        for name in ("untrained", "dev", "test")
        if result.get(name) and _numbers(result[name])
    ]
    return "; ".join(parts) or "trained"


def _numbers(measured: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in measured.items() if name != "lessons")
