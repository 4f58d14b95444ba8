"""Rows of files as a command reads them."""

import json
from pathlib import Path

import pytest

from tercet.cli.input_files import InputFiles, json_line
from tercet.settings.files import FileConfig


def test_dates_and_bytes_of_parquet_can_be_metadata_and_json(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "text": ["one"],
        "day": arrow.array([0], arrow.date32()),
        "image": arrow.array([{"bytes": b"\xff\x00"}]),
        "length": arrow.array([1500], arrow.duration("ms")),
    }
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    files, source = InputFiles(file=FileConfig()), str(tmp_path / "a.parquet")
    expected = {"day": "1970-01-01", "image": {"bytes": "/wA="}, "length": 1.5}
    (item,) = files.items(source, ["text"], None)
    assert item.metadata == expected
    ((_, rest),) = files.texts(source, ["text"])
    assert json.loads(json_line(rest)) == expected
