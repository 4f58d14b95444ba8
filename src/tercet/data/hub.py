"""Rows of a Hugging Face data set, as a stream."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tercet.data.rows import Row
from tercet.errors import DataError, NetworkWarning
from tercet.extras import require
from tercet.files.paths import looks_like_path

HUB = "hf:"


def hub_rows(name: str) -> Iterator[Row]:
    """The rows of ``hf:NAME@SPLIT`` or ``hf:NAME:CONFIG@SPLIT``; NAME is a hub id or a local folder."""
    address, _, split = name.removeprefix(HUB).partition("@")
    path, _, config = address.partition(":")
    if not path or not split:
        raise DataError(f"{name} does not name a data set and its split: write {HUB}org/name@train")
    datasets = require("datasets", extra="datasets", purpose=f"reading {name}")
    if not Path(path).exists():
        _announce(name, path, datasets)
    try:
        rows = datasets.load_dataset(path, config or None, split=split, streaming=True)
        for number, columns in enumerate(rows):
            yield Row(f"{name}, row {number}", columns)
    except Exception as error:  # no network, no such data set, no such split: each has its own kind
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{name} cannot be read: {reason}") from error


def _announce(name: str, path: str, datasets: ModuleType) -> None:
    """Warn that the hub is contacted, or raise if it must not be."""
    if looks_like_path(path):
        raise DataError(f"{name}: there is no folder {path}: check the path")
    if datasets.config.HF_HUB_OFFLINE:
        raise DataError(
            f"{name} is on the Hugging Face hub, and offline mode is on: unset HF_HUB_OFFLINE, or give a "
            "local file"
        )
    warnings.warn(f"{name}: contacting {datasets.config.HF_ENDPOINT}", NetworkWarning, stacklevel=2)
