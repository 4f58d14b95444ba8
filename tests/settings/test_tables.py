"""Tables become settings; errors name the table, the key and the value."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from tercet.errors import InputError
from tercet.settings.tables import check_keys, from_table, set_value, strings_to_lists, subtable


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A field of each type that recipes use."""

    name: str
    count: int = 1
    rate: float = 0.5
    limit: int | None = None
    enabled: bool = False
    kind: Literal["a", "b"] = "a"
    files: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in ("a", "b"):
            raise InputError(f"kind must be a or b, got {self.kind!r}")


def test_a_table_fills_a_dataclass() -> None:
    table = {"name": "x", "rate": 1, "limit": 3, "kind": "b", "files": ["f", "g"], "columns": {"text": "t"}}
    expected = Settings(name="x", rate=1, limit=3, kind="b", files=("f", "g"), columns={"text": "t"})
    assert from_table(Settings, table, "recipe") == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "x", "size": 1}, r"r.toml, \[t\]: unknown setting 'size'; known settings: name, count, "),
        ({"count": 3}, r"r.toml, \[t\]: the setting name is missing"),
        ({"name": 3}, r"r.toml, \[t\]: name must be a string, got int 3"),
        ({"name": "x", "count": 1.5}, r"count must be a whole number, got float 1.5"),
        ({"name": "x", "count": True}, r"count must be a whole number, got bool True"),
        ({"name": "x", "rate": "fast"}, r"rate must be a finite number, got str 'fast'"),
        ({"name": "x", "rate": float("nan")}, r"rate must be a finite number, got float nan"),
        ({"name": "x", "limit": "3"}, r"limit must be a whole number, got str '3'"),
        ({"name": "x", "enabled": 1}, r"enabled must be true or false, got int 1"),
        ({"name": "x", "kind": 2}, r"kind must be a string, got int 2"),
        ({"name": "x", "kind": "c"}, r"r.toml, \[t\]: kind must be a or b, got 'c'"),
        ({"name": "x", "files": ["f", 1]}, r"files must be a list, and each item a string, got tuple"),
        ({"name": "x", "columns": ["f"]}, r"columns must be a table, and each value .* string, got tuple"),
        (
            {"name": "x", "columns": {"text": 1}},
            r"columns must be a table, and each value .* string, got dict",
        ),
        (3, r"r.toml, \[t\] must be a table, got 3"),
    ],
)
def test_an_invalid_table_is_refused_with_the_name_of_the_key(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_table(Settings, table, "r.toml, [t]")


def test_an_unknown_key_of_a_table_is_named() -> None:
    check_keys({"model": {}}, ["model", "data"], "r.toml")
    with pytest.raises(InputError, match=r"r.toml: unknown setting 'modle'; known settings: model, data"):
        check_keys({"modle": {}}, ["model", "data"], "r.toml")


def test_a_subtable_must_be_a_table() -> None:
    assert subtable({"a": {"b": 1}}, "a", "r.toml") == {"b": 1}
    assert subtable({}, "a", "r.toml") == {}
    with pytest.raises(InputError, match=r"r.toml: \[a\] must be a table, got 1"):
        subtable({"a": 1}, "a", "r.toml")


@pytest.mark.parametrize(
    ("assignment", "value"),
    [("t.k=3", 3), ("t.k = 1e-3", 1e-3), ("t.k=true", True), ('t.k=["a"]', ["a"]), ("t.k=bi", "bi")],
)
def test_an_assignment_sets_a_value_of_a_toml_type_or_a_string(assignment: str, value: object) -> None:
    table: dict[str, Any] = {"t": {"other": 1}}
    set_value(table, assignment)
    assert table == {"t": {"other": 1, "k": value}}


def test_an_assignment_creates_missing_tables() -> None:
    table: dict[str, Any] = {}
    set_value(table, "data.train.limit=5")
    assert table == {"data": {"train": {"limit": 5}}}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("t.k", r"must have the form table.setting=value, got 't.k'"),
        (".k=1", r"must have the form table.setting=value, got '.k=1'"),
        ("name.k=1", r"'name.k=1': name is not a table"),
    ],
)
def test_an_invalid_assignment_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        set_value({"name": "x"}, assignment)


def test_a_single_file_needs_no_list() -> None:
    assert strings_to_lists({"files": "f", "name": "x"}, ["files"]) == {"files": ["f"], "name": "x"}
    assert strings_to_lists({"files": ["f", "g"]}, ["files", "test"]) == {"files": ["f", "g"]}
