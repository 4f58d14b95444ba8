"""Rows of JSON arrays."""

import gzip
from pathlib import Path

import pytest

from tercet.data.rows import read_rows
from tercet.errors import DataError


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_an_array_holds_objects_or_strings(compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("a.json.gz" if compressed else "a.json")
    content = '[\n  {"q": "one", "n": 1},\n  "둘"\n]\n'.encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    rows = list(read_rows(path))
    assert [row.columns for row in rows] == [{"q": "one", "n": 1}, {"text": "둘"}]
    assert [row.location for row in rows] == [f"{path}, element 0", f"{path}, element 1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '["a", 1]', "element 1: an element must be a JSON object or string, got int 1"),
        (
            "a.json",
            '{"data": [{"q": "a"}]}',
            "got an object whose key 'data' holds a list of 1: write that list",
        ),
        ("a.json", '{"a": 1}', "got an object with the keys 'a': write its rows to a file as an array"),
        ("a.json", "3", "must be an array of rows, got int 3"),
        ("a.json", '[\n"a",\nx\n', "line 3: not valid JSON"),
        ("a.json", '{"a": 1}\n{"a": 2}\n', "line 2: not valid JSON .*use --format jsonl"),
        ("a.jsonl", '["a", "b"]\n', "line 1: a line must be .*use --format json"),
        ("a.json", "[" * 100_000, "line 1: values are nested more than 100 levels deep"),
    ],
)
def test_errors_say_where_and_how_to_pass_the_rows(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}.*{message}"):
        list(read_rows(tmp_path / name))
