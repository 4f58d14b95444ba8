"""JSON and TOML that is valid, but repeats keys or is too deep."""

import json
import time
import tomllib
from pathlib import Path

import pytest

from tercet.errors import FileError, InputError
from tercet.files.parsing import RefusedJsonError, parse_json, parse_toml
from tercet.files.structured import read_json, read_toml
from tercet.settings.tables import set_value


@pytest.mark.parametrize("text", ['{"a": [1, {"b": null}], "c": "\\u00e9"}', "[]", "3", '"{[a"', "-1.5e3"])
def test_json_within_the_limits_has_its_value(text: str) -> None:
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('[{"a": 1},\n{"b": {"a": 1},\n"b": 2}]', 3, "the key 'b' occurs twice: keep one"),
        ('[{"a": ":"},\n {"\\u0061": 1, "a": 2}]', 2, "the key 'a' occurs twice"),
        ("[0,\n" + "[" * 100 + "]" * 101, 2, "values are nested more than 100 levels deep.*TERCET_MAX_DEPTH"),
        ("\n" + '{"a":' * 100_000, 2, "values are nested more than 100 levels deep"),
        ('\n\n{"' + "k" * 10_001 + '": 1}', 3, "a key has more than 10,000 char.*TERCET_MAX_KEY_CHARACTERS"),
    ],
)
def test_json_is_refused_with_the_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(RefusedJsonError, match=reason) as caught:
        parse_json(text)
    assert caught.value.lineno == line


def test_the_limits_are_allowed() -> None:
    assert parse_json("[" * 100 + "]" * 100)
    assert parse_json(f'{{"{"k" * 10_000}": ["the same string", "the same string"]}}')
    assert parse_toml("a = " + "[" * 99 + "]" * 99)
    floats = ", ".join(["1.5"] * 500)
    assert parse_toml(f'a = [{floats}]\n"{"." * 500}" = "{"[" * 500}"  # {"[" * 500}')


def test_a_higher_limit_than_python_can_read_is_still_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_MAX_DEPTH", "1000000")
    with pytest.raises(RefusedJsonError, match="more deeply than Python can read"):
        parse_json("[" * 200_000)
    with pytest.raises(tomllib.TOMLDecodeError, match="more deeply than Python can read"):
        parse_toml("a = " + "[" * 5000)


@pytest.mark.parametrize(
    "text",
    [
        "# first\na = " + "[" * 5000,
        "\n" + ".".join("a" * 20_000) + " = 1",
        "\n[" + ".".join("a" * 20_000) + "]",
    ],
    ids=["arrays", "keys", "headers"],
)
def test_deep_toml_names_file_and_line_at_once(text: str, tmp_path: Path) -> None:
    """tomllib would take seconds to minutes for the dotted keys."""
    (tmp_path / "deep.toml").write_text(text)
    start = time.monotonic()
    with pytest.raises(InputError, match=r"deep\.toml .*more than 100 levels deep.*\(at line 2\)"):
        read_toml(tmp_path / "deep.toml")
    assert time.monotonic() - start < 2


def test_a_long_key_in_toml_is_refused() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="a key has more than 10,000 characters"):
        parse_toml(f"{'k' * 10_001} = 1")


@pytest.mark.parametrize("deep", ["[" * 5000, "[" * 5000 + "]" * 5000])
def test_a_deep_value_of_an_assignment_is_a_string(deep: str) -> None:
    table: dict[str, object] = {}
    set_value(table, f"a.b={deep}")
    assert table == {"a": {"b": deep}}


@pytest.mark.parametrize("limit", ["TERCET_MAX_JSON_BYTES", "TERCET_MAX_TOML_BYTES"])
def test_a_large_file_is_not_read(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limit, "10")
    (tmp_path / "large").write_text(" " * 11)
    with pytest.raises((FileError, InputError), match=f"large has more than 10 bytes: .*{limit}"):
        (read_json if "JSON" in limit else read_toml)(tmp_path / "large")


def test_a_json_file_that_is_a_folder_or_repeats_a_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot read .*: Is a directory"):
        read_json(tmp_path)
    (tmp_path / "config.json").write_text('{"a": 1,\n"a": 2}')
    with pytest.raises(FileError, match=r"config\.json, line 2: the key 'a' occurs twice"):
        read_json(tmp_path / "config.json")


@pytest.mark.parametrize("integer", ["9" * 5000, "0x" + "f" * 5000, str(2**63), str(-(2**63) - 1)])
def test_an_integer_that_toml_does_not_have_is_refused(integer: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="an integer has more than 64 bits"):
        parse_toml(f"a = [{{b = {integer}}}]")


def test_the_largest_integers_of_toml_are_read() -> None:
    assert parse_toml(f"a = [{2**63 - 1}, {-(2**63)}]") == {"a": [2**63 - 1, -(2**63)]}
