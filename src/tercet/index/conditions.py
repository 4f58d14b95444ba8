"""Conditions on the metadata of candidates, independent of the database that evaluates them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeAlias

from tercet.errors import InputError
from tercet.inputs import SHOWN_CHARACTERS, check_encodable, describe, shortened

EQUALITIES = ("=", "!=", "in", "not in")
ORDERINGS = ("<", "<=", ">", ">=")
OPERATORS = (*EQUALITIES, *ORDERINGS)
LISTED = ("in", "not in")
"""Operators whose value is a list."""
SHOWN_VALUES = 10
"""Maximum number of values of a list in a message."""
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)

Where: TypeAlias = Mapping[str, Any] | Sequence["Condition"]
"""Metadata by column: a value, a list of values, or values by operator; or the conditions themselves."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A column of the metadata, an operator and a value; the value of ``in`` and ``not in`` is a list.

    ``None`` is equal to a missing value. ``!=`` and ``not in`` are the opposites of ``=`` and ``in``, so they
    hold for candidates without the column. The other four never hold for those. They compare numbers with
    numbers, also those that are stored as strings, and other strings by their characters.
    """

    column: str
    operator: str
    value: Any
    written: str = field(default="", compare=False)
    """How the user wrote the condition, for messages. Default: from the other fields."""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InputError(f"a condition needs the name of a column, got {describe(self.column)}")
        check_encodable(self.column, f"the column {self.column!a} of a condition")
        if self.operator not in OPERATORS:
            raise InputError(
                f"the operator of a condition must be one of {', '.join(OPERATORS)}, "
                f"got {self.operator!r} in {self.column}={self.value!r}"
            )
        object.__setattr__(self, "value", self._checked())

    def __str__(self) -> str:
        if self.written:
            return self.written
        spaced = f" {self.operator} " if self.operator in LISTED else self.operator
        return f"{self.column}{spaced}{_shown(self.value)}"

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of a list, or the only value."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def is_textual(self) -> bool:
        """Whether an ordering compares characters: "10" and "9" are compared as numbers."""
        return isinstance(self.value, str) and as_number(self.value) is None

    @property
    def holds_without_value(self) -> bool:
        """Whether the condition holds for candidates without the column."""
        if self.operator in ORDERINGS:
            return False
        return (None in self.values) == (self.operator in ("=", "in"))

    def _checked(self) -> Any:
        value = _plain(self.value)
        if self.operator in LISTED:
            if not isinstance(value, (list, tuple, set, frozenset)):
                raise InputError(f"{self.operator} needs a list, got {self.column}={describe(value)}")
            return tuple(_scalar(self.column, each) for each in value)
        checked = _scalar(self.column, value)
        if self.operator in ORDERINGS and (checked is None or isinstance(checked, bool) or checked == ""):
            raise InputError(
                f"{self.operator} compares with a number or a string, got {self.column}={describe(checked)}"
            )
        return checked


def conditions_of(where: Where) -> list[Condition]:
    """The conditions in a mapping such as ``{"topic": ["a", "b"], "year": {">=": 2020}}``.

    All of them must hold. A value means equality, a list any of its values.
    """
    if isinstance(where, Mapping):
        return [condition for column, value in where.items() for condition in _of_column(column, value)]
    if isinstance(where, str) or not isinstance(where, Iterable):
        raise InputError(f'where must be a mapping such as {{"topic": "cards"}}, got {describe(where)}')
    conditions = list(where)
    for condition in conditions:
        if not isinstance(condition, Condition):
            raise InputError(f"where must be a mapping or a list of conditions, got {describe(condition)}")
    return conditions


def as_number(text: str) -> int | float | None:
    """The number that a text spells, such as ``10`` or ``-2.5e3``; None if it spells none."""
    stripped = text.strip()
    if not NUMBER.fullmatch(stripped):
        return None
    number = float(stripped)
    if not isfinite(number):
        return None
    whole = stripped.lstrip("+-").isdigit() and abs(number) < 2**63
    return int(stripped) if whole else number


def _of_column(column: str, value: Any) -> list[Condition]:
    plain = _plain(value)
    if isinstance(plain, Mapping):
        if not plain:
            raise InputError(f"a condition needs an operator, got {column}={{}}: write {{'>=': 2020}}")
        return [Condition(column, operator, each) for operator, each in plain.items()]
    is_list = isinstance(plain, (list, tuple, set, frozenset))
    return [Condition(column, "in" if is_list else "=", plain)]


def _plain(value: Any) -> Any:
    """Scalars and arrays of numpy as Python values."""
    return value.tolist() if hasattr(value, "tolist") else value


def _scalar(column: str, value: Any) -> Any:
    plain = _plain(value)
    if plain is not None and not isinstance(plain, (str, int, float)):
        raise InputError(f"a condition must compare with a string, number or bool, got {column}={plain!r}")
    if isinstance(plain, int) and abs(plain) >= 2**63:
        raise InputError(f"a condition must compare with an integer below 2**63, got {column}={plain}")
    if isinstance(plain, float) and not isfinite(plain):
        raise InputError(f"a condition must compare with a finite number, got {column}={plain}")
    if isinstance(plain, str):
        check_encodable(plain, f"the condition on {column!r}")
    return plain


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_shown, value[:SHOWN_VALUES])) + (",…" if len(value) > SHOWN_VALUES else "")
    return shortened(repr(value), SHOWN_CHARACTERS)
