"""TOML tables to settings dataclasses, and ``--set table.key=value``."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from math import inf
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tercet.errors import InputError
from tercet.files.parsing import parse_toml
from tercet.inputs import describe

Settings = TypeVar("Settings")


def from_table(kind: type[Settings], table: Any, where: str) -> Settings:
    """The dataclass ``kind`` filled from a table; unknown, missing and mistyped keys are errors.

    Args:
        where: how errors call the table, such as ``recipe.toml, [training]``.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{where} must be a table, got {table!r}")
    known = fields(cast("Any", kind))
    check_keys(table, [each.name for each in known], where)
    for each in known:
        if each.name not in table and each.default is MISSING and each.default_factory is MISSING:
            raise InputError(f"{where}: the setting {each.name} is missing")
    given = lists_to_tuples(table)
    check_types(kind, given, where)
    try:
        return kind(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except TypeError as error:
        raise InputError(f"{where}: a value has the wrong type ({error})") from None


def subtable(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """The table under ``key``; empty if there is none."""
    part = table.get(key, {})
    if not isinstance(part, Mapping):
        raise InputError(f"{where}: [{key}] must be a table, got {part!r}")
    return part


def check_keys(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Raise if a table has an unknown key."""
    names = list(known)
    unknown = [key for key in table if key not in names]
    if unknown:
        raise InputError(f"{where}: unknown setting {unknown[0]!r}; known settings: {', '.join(names)}")


def set_value(table: dict[str, Any], assignment: str) -> None:
    """Apply an assignment such as ``training.epochs=3`` to nested tables."""
    path, equals, value = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise InputError(f"an assignment must have the form table.setting=value, got {assignment!r}")
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise InputError(f"{assignment!r}: {key} is not a table")
    table[keys[-1]] = _parse(value.strip())


def lists_to_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with tuples instead of the lists of JSON and TOML."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def strings_to_lists(table: Any, names: Iterable[str]) -> Any:
    """The table with a list instead of a string under each of ``names``: one file needs no brackets."""
    if not isinstance(table, Mapping):
        return table
    listed = {name: [table[name]] for name in names if isinstance(table.get(name), str)}
    return {**table, **listed}


def check_types(kind: Any, given: Mapping[str, Any], where: str) -> None:
    """Raise if a value does not have the type of its field in a dataclass; an int is a valid float."""
    hints = get_type_hints(kind)
    for name, value in given.items():
        if not _fits(value, hints[name]):
            raise InputError(f"{where}: {name} must be {_type_name(hints[name])}, got {describe(value)}")


def _parse(text: str) -> Any:
    """A TOML number, boolean or list; anything else is a string."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return isinstance(value, str)  # the dataclass checks which one
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, inner[1]) for each in value.values())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and -inf < value < inf
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return hint is Any or isinstance(value, hint)


def _type_name(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_type_name(each) for each in inner if each is not type(None))
    if origin is tuple:
        return f"a list, and each item {_type_name(inner[0])}"
    if origin is dict:
        return f"a table, and each value {_type_name(inner[1])}"
    names = {float: "a finite number", int: "a whole number", bool: "true or false"}
    return names.get(hint, "a string")
