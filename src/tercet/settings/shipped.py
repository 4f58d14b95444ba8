"""Recipes and tasks that are installed with tercet, by name."""

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from tercet.errors import InputError

Shipped: TypeAlias = Literal["recipes", "tasks"]


def shipped(kind: Shipped) -> dict[str, Path]:
    """The files by name, in alphabetical order.

    A wheel contains them in the package. In a checkout they are beside ``src``.
    """
    package = Path(str(files("tercet")))
    found = next((folder for folder in (package / kind, package.parents[1] / kind) if folder.is_dir()), None)
    return {} if found is None else {file.stem: file for file in sorted(found.glob("*.toml"))}


def shipped_path(kind: Shipped, name: str) -> Path:
    """The file of a name; an unknown name is an error that shows similar ones."""
    known = shipped(kind)
    if name not in known:
        similar = get_close_matches(Path(name).stem, known, n=3, cutoff=0.5)
        meant = f"; similar names are {', '.join(similar)}" if similar else ""
        raise InputError(
            f"{kind.removesuffix('s')} {name} does not exist, neither as a file nor installed{meant}"
            f': "tercet {kind}" lists these'
        )
    return known[name]
