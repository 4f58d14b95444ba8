"""Rows of a Hugging Face data set, streamed."""

from collections.abc import Iterator

from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.extras import require

HUB = "hf:"


def hub_rows(name: str) -> Iterator[Row]:
    """The rows of ``hf:NAME@SPLIT`` or ``hf:NAME:CONFIG@SPLIT``; NAME is a hub id or a local folder."""
    address, _, split = name.removeprefix(HUB).partition("@")
    place, _, config = address.partition(":")
    if not place or not split:
        raise DataError(f"{name} does not name a data set and its split, as {HUB}org/name@train does")
    datasets = require("datasets", extra="datasets", purpose=f"reading {name}")
    try:
        rows = datasets.load_dataset(place, config or None, split=split, streaming=True)
        for number, columns in enumerate(rows, start=1):
            yield Row(f"{name}, row {number}", columns)
    except Exception as error:  # no network, no such set, no such split: each has its own kind
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{name} cannot be read: {reason}") from error
