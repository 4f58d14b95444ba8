"""``tercet recipes`` and ``tercet tasks``: the TOML files that are installed with tercet."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tercet.data.sources import SAMPLE
from tercet.files.structured import read_toml
from tercet.settings.shipped import Shipped, shipped, shipped_path

NameArgument = Annotated[str, typer.Argument(help="A name of the list.", metavar="NAME")]

NEEDS_DATA = "Without sample data, the files of the data set are needed (--data FOLDER)."

recipes = typer.Typer(
    name="recipes",
    help="List the recipes that are installed with tercet, or show one.\n\n"
    "A name works wherever a recipe file does, in any folder.\n\n"
    "Example: tercet train bi-sample",
)
tasks = typer.Typer(
    name="tasks",
    help="List the evaluation tasks that are installed with tercet, or show one.\n\n"
    "task:NAME works wherever a task file does, in any folder.\n\n"
    "Example: tercet evaluate bi task:stsb --data FOLDER",
)


@recipes.callback(invoke_without_command=True)
def list_recipes(context: typer.Context) -> None:
    """List the recipes."""
    if context.invoked_subcommand is None:
        _list("recipes", hint='"tercet recipes show NAME" prints one.')


@tasks.callback(invoke_without_command=True)
def list_tasks(context: typer.Context) -> None:
    """List the tasks."""
    if context.invoked_subcommand is None:
        _list("tasks", hint='"tercet tasks show NAME" prints one; "tercet evaluate bi task:NAME" runs it.')


@recipes.command("show")
def show_recipe(name: NameArgument) -> None:
    """Print a recipe.

    Example: tercet recipes show poly-sample > my.toml
    """
    typer.echo(shipped_path("recipes", name).read_text(encoding="utf-8"), nl=False)


@tasks.command("show")
def show_task(name: NameArgument) -> None:
    """Print a task.

    Example: tercet tasks show stsb
    """
    typer.echo(shipped_path("tasks", name).read_text(encoding="utf-8"), nl=False)


def _list(kind: Shipped, *, hint: str) -> None:
    known = shipped(kind)
    width = max(map(len, known), default=0)
    for name, file in known.items():
        typer.echo(f"{name:{width}}  {_description(file)}")
    typer.echo(f"\n{hint} {NEEDS_DATA}")


def _description(file: Path) -> str:
    """What a recipe says about itself; of a task, its kind and its files."""
    table = read_toml(file)
    if "about" in table:
        command = _command(table)
        return f"{table['about']} ({command}{', sample data' if _is_sample(table) else ''})"
    given = table.get("files", "")
    return f"{table.get('kind')}: {given if isinstance(given, str) else ', '.join(given)}"


def _command(table: dict[str, Any]) -> str:
    """The command that a recipe belongs to."""
    if "student" in table:
        return "augment"
    return "train" if "objective" in table or "kind" in table.get("model", {}) else "pretrain"


def _is_sample(table: dict[str, Any]) -> bool:
    files = table["data"]["train"]["files"]
    return all(name.startswith(SAMPLE) for name in ([files] if isinstance(files, str) else files))
