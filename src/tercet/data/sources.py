"""From the name of a data source to its rows, whatever kind of source it is."""

import os
from collections.abc import Iterator
from pathlib import Path

from tercet.data.hub import HUB, hub_rows
from tercet.data.rows import STDIN, Format, Row, count_rows, read_rows
from tercet.data.sample import sample_path
from tercet.errors import DataError

SAMPLE = "sample:"

ROOT_VARIABLE = "TERCET_DATA"
"""Names the folder that data sets lie under, where none is given."""


def open_source(name: str, *, root: Path | None = None, file_format: Format | None = None) -> Iterator[Row]:
    """The rows of a file, of standard input (``-``), of a sample (``sample:faq.en``) or of a Hugging Face
    data set (``hf:org/name@train``).

    Args:
        root: the folder that files named by a relative path are looked for under.
    """
    if name.startswith(HUB):
        return hub_rows(name)
    return read_rows(_place(name, root), file_format)


def rows_in(name: str, *, root: Path | None = None, file_format: Format | None = None) -> int | None:
    """How many rows there are, or None where only reading them would tell."""
    return None if name.startswith(HUB) else count_rows(_place(name, root), file_format)


def data_root(given: Path | None) -> Path | None:
    """The folder given, or the one that ``TERCET_DATA`` names, or none."""
    named = os.environ.get(ROOT_VARIABLE)
    return given or (Path(named) if named else None)


def _place(name: str, root: Path | None) -> str:
    if name.startswith(SAMPLE):
        return str(sample_path(name.removeprefix(SAMPLE)))
    if name == STDIN or root is None or Path(name).is_absolute():
        return name
    if not (root / name).is_file():
        raise DataError(f"there is no {name} under {root}: say where the data lies (--data, {ROOT_VARIABLE})")
    return str(root / name)
