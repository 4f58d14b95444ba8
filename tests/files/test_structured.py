"""JSON files and lines: only finite numbers are written, and unreadable files are named."""

import json
from pathlib import Path

import pytest

from tercet.errors import FileError, OutputError
from tercet.files.structured import json_text, null_if_not_finite, read_json, write_json

NESTED = 100_000
"""Levels that are too deep for Python's JSON reader."""


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_an_error_that_says_where_it_is(number: float) -> None:
    content = {"name": "x", "rows": [{"score": 1.0}, {"score": number}]}
    with pytest.raises(OutputError, match=rf"must be finite, got rows\[1\]\.score = {number}$"):
        json_text(content)


def test_a_lone_number_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(OutputError, match="must be finite, got nan"):
        json_text(float("nan"))


def test_a_file_is_not_replaced_by_json_with_nan(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    write_json(file, {"f1": 0.5})
    with pytest.raises(OutputError, match=r"cannot write .*result\.json: .* got f1 = nan"):
        write_json(file, {"f1": float("nan")})
    assert read_json(file) == {"f1": 0.5}
    assert list(tmp_path.iterdir()) == [file]


def test_types_that_json_does_not_have_need_a_conversion(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is not JSON serializable"):
        json_text({"path": tmp_path})
    assert json.loads(json_text({"path": tmp_path}, default=str)) == {"path": str(tmp_path)}


def test_content_that_is_nested_too_deeply_is_an_output_error() -> None:
    content: list[object] = []
    for _ in range(NESTED):
        content = [content]
    with pytest.raises(OutputError, match="nested too deeply"):
        json_text(content)


def test_undefined_values_become_null_where_that_is_asked_for() -> None:
    content = {"a": float("nan"), "b": [1.5, float("inf"), {"c": -float("inf")}], "d": "nan", "e": 3}
    assert null_if_not_finite(content) == {"a": None, "b": [1.5, None, {"c": None}], "d": "nan", "e": 3}


def test_a_file_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("[" * NESTED + "]" * NESTED)
    with pytest.raises(FileError, match=r"config\.json, line 1: values are nested more than 100 levels deep"):
        read_json(file)


def test_a_file_that_the_system_cannot_read_is_named(tmp_path: Path) -> None:
    """A folder stands for every reason, such as permissions, which do not stop the root user."""
    (tmp_path / "config.json").mkdir()
    with pytest.raises(FileError, match=r"cannot read .*config\.json: Is a directory"):
        read_json(tmp_path / "config.json")


def test_half_of_a_character_is_refused_and_a_whole_one_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"a": "\\uD83D\\uDE00"}')
    assert read_json(file) == {"a": "\N{GRINNING FACE}"}
    for half in ('{"a": "\\uD83D"}', '{"\\ude00": 1}'):
        file.write_text(half)
        with pytest.raises(FileError, match=r"is not valid JSON: .*surrogates not allowed") as refused:
            read_json(file)
        assert str(refused.value).encode()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", f"{'9' * 400}.5"])
def test_a_json_file_with_a_number_that_is_not_finite_is_refused(number: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(f'{{"layers": [{{"rate": {number}}}]}}')
    with pytest.raises(FileError, match=r"config\.json must be finite, got layers\[0\]\.rate = "):
        read_json(file)
    assert "layers" in read_json(file, finite=False)


def test_names_of_strange_numbers_are_texts_like_others(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"NaN": "Infinity", "id": 1e100, "hash": "0e123"}')
    assert read_json(file) == {"NaN": "Infinity", "id": 1e100, "hash": "0e123"}
