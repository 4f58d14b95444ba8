"""The name of a data source to its rows."""

import os
from collections.abc import Iterator
from pathlib import Path

from tercet.data.hub import HUB, hub_rows
from tercet.data.row_counts import quick_count
from tercet.data.rows import STDIN, Row, is_regular_file, read_rows
from tercet.data.sample import sample_path
from tercet.errors import DataError
from tercet.settings.data import SAMPLE as SAMPLE
from tercet.settings.files import FileConfig

ROOT_VARIABLE = "TERCET_DATA"
"""The environment variable with the default data folder."""


def open_source(name: str, *, root: Path | None = None, file: FileConfig | None = None) -> Iterator[Row]:
    """The rows of a data source.

    Args:
        name: a file, standard input (``-``), a sample (``sample:faq.en``) or a Hugging Face data set
            (``hf:org/name@train``).
        root: the folder in which relative paths are looked up.
        file: how files are read; a Hugging Face data set has its own types.
    """
    if name.startswith(HUB):
        return hub_rows(name)
    return read_rows(_path(name, root), file)


def rows_in(name: str, *, root: Path | None = None, file: FileConfig | None = None) -> int | None:
    """The number of rows of a data source; None if it is unknown before reading."""
    return None if name.startswith(HUB) else quick_count(_path(name, root), file)


def data_root(given: Path | None) -> Path:
    """``given``, or the folder in ``TERCET_DATA``, or the current folder."""
    return given or Path(os.environ.get(ROOT_VARIABLE) or ".")


def _path(name: str, root: Path | None) -> str:
    if name.startswith(SAMPLE):
        return str(sample_path(name.removeprefix(SAMPLE)))
    if name == STDIN or root is None or Path(name).is_absolute():
        return name
    if not is_regular_file(str(root / name)):
        raise DataError(
            f"there is no file {root / name}: check the name, or set the data folder "
            f"({ROOT_VARIABLE}, --data)"
        )
    return str(root / name)
