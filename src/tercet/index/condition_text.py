"""Conditions as users type them: ``topic=cards``, ``year>=2020``, ``topic not in cards,loans``."""

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from tercet.errors import InputError
from tercet.index.conditions import ORDERINGS, Condition

CONDITION = re.compile(
    r"""\s*(?P<column>"(?:[^"\\]|\\.)*"|[^"].*?)       # a name, in double quotes if it contains an operator
        (?P<operator>\s*(?:==|!=|<=|>=|=|<|>)|\s+(?:not\s+)?in\s)
        (?P<value>.*)""",
    re.VERBOSE | re.DOTALL,
)


def parse_conditions(texts: Iterable[str]) -> list[Condition]:
    """The conditions that texts spell, all of which must hold."""
    conditions = [parse_condition(text) for text in texts]
    chosen: dict[str, Condition] = {}
    for condition in (each for each in conditions if each.operator == "in"):
        other = chosen.setdefault(condition.column, condition)
        if not set(other.values) & set(condition.values):
            raise InputError(
                f"{other} and {condition} can never both hold: for any of several values, write "
                f'"{condition.column} in A,B"'
            )
    return conditions


def parse_condition(text: str) -> Condition:
    """The condition that a text spells.

    A value that looks like a number or a bool is equal to that number or bool, and to the same text.
    """
    found = CONDITION.fullmatch(text)
    if found is None or not found["column"].strip():
        raise InputError(
            f'a condition must be NAME=VALUE, such as topic=cards, "year>=2020" or "topic in cards,loans", '
            f"got {text!r} (a shell needs the quotes)"
        )
    column, operator = _name(found["column"].strip()), " ".join(found["operator"].split())
    value, written = found["value"].strip(), " ".join(text.split())
    if operator in ORDERINGS:
        if not value:
            raise InputError(f"{operator} needs a value, got {text!r}")
        return Condition(column, operator, value, written)
    if operator in ("in", "not in"):
        choices = [each for part in _parts(value, text) for each in _interpretations(part)]
        return Condition(column, operator, choices, written)
    operator = "not in" if operator == "!=" else "in"
    return Condition(column, operator, _interpretations(value), written)


def _name(column: str) -> str:
    if not column.startswith('"'):
        return column
    try:
        name: str = json.loads(column)
    except ValueError:
        raise InputError(f"{column} is not a name in double quotes") from None
    return name


def _parts(value: str, text: str) -> list[Any]:
    """The values of a list: separated by commas, or a JSON array if they contain commas themselves."""
    if not value.startswith("["):
        parts = [part.strip() for part in value.split(",")]
        if not all(parts):
            raise InputError(f'a list of values must be A,B or ["A", "B"], got {text!r}')
        return parts
    try:
        values: list[Any] = json.loads(value)
    except ValueError as error:
        raise InputError(f"a list of values must be A,B or a JSON array, got {text!r}: {error}") from None
    return values


def _interpretations(value: Any) -> list[Any]:
    """A value as a string, and as a number or a bool if it can be one."""
    if not isinstance(value, str):
        return [value]
    try:
        parsed = json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return [value]
    if not isinstance(parsed, (int, float)) or (isinstance(parsed, int) and abs(parsed) >= 2**63):
        return [value]
    return [value, parsed] if isfinite(parsed) else [value]  # 1e999 is too large for a number
