"""Rows of a Hugging Face data set, as a stream."""

from collections.abc import Iterator

from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.extras import require

HUB = "hf:"


def hub_rows(name: str) -> Iterator[Row]:
    """The rows of ``hf:NAME@SPLIT`` or ``hf:NAME:CONFIG@SPLIT``; NAME is a hub id or a local folder."""
    address, _, split = name.removeprefix(HUB).partition("@")
    path, _, config = address.partition(":")
    if not path or not split:
        raise DataError(f"{name} does not name a data set and its split: write {HUB}org/name@train")
    datasets = require("datasets", extra="datasets", purpose=f"reading {name}")
    try:
        rows = datasets.load_dataset(path, config or None, split=split, streaming=True)
        for number, columns in enumerate(rows):
            yield Row(f"{name}, row {number}", columns)
    except Exception as error:  # no network, no such data set, no such split: each has its own kind
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{name} cannot be read: {reason}") from error
