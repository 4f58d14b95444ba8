"""Checks of what users hand in; every error names the position of what is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan
from numbers import Real
from operator import index
from types import UnionType
from typing import Any, Literal, SupportsIndex, Union, get_args, get_origin, get_type_hints

from tercet.errors import InputError
from tercet.records import Context

SMALLEST, LARGEST = 1e-6, 1e6
"""Of a scale."""


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_text(value: object, name: str) -> str:
    """``value``, if it is a string with something in it that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {_describe(value)}")
    if not value or value.isspace():
        raise InputError(f"{name} is empty: every text needs a character that is not white space")
    if not value.isascii():
        _check_encodable(value, name)
    return value


def check_many(values: Iterable[object], name: str) -> Iterable[object]:
    """``values``, if they are several, in an order."""
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of them, got {_describe(values)}")
    return values


def check_candidates(candidates: Iterable[object]) -> list[str]:
    """The candidates as a list of usable strings, at least one."""
    checked = [
        check_text(text, f"candidate {position}")
        for position, text in enumerate(check_many(candidates, "candidates"))
    ]
    if not checked:
        raise InputError("there are no candidates: give at least one")
    return checked


def check_context(context: Any, name: str = "context") -> Context:
    """A string, or a non-empty tuple of turns."""
    if isinstance(context, str):
        return check_text(context, name)
    if isinstance(context, (bytes, dict)) or not hasattr(context, "__getitem__"):
        raise InputError(f"{name} must be a string or a list of turns, got {_describe(context)}")
    turns = tuple(check_text(turn, f"turn {position} of {name}") for position, turn in enumerate(context))
    if not turns:
        raise InputError(f"{name} has no turns: give at least one")
    return turns


def check_contexts(contexts: Iterable[object]) -> list[Context]:
    """Many contexts, at least one."""
    checked = [
        check_context(context, f"context {position}")
        for position, context in enumerate(check_many(contexts, "contexts"))
    ]
    if not checked:
        raise InputError("there are no contexts: give at least one")
    return checked


def check_pairs(contexts: Iterable[object], candidates: Iterable[object]) -> tuple[list[Context], list[str]]:
    """As many contexts as candidates, at least one of each."""
    left, right = check_contexts(contexts), check_candidates(candidates)
    if len(left) != len(right):
        raise InputError(f"pairs need as many contexts as candidates, got {len(left)} and {len(right)}")
    return left, right


def check_top(k: int) -> int:
    """``k``, if it asks for at least one."""
    return check_count("k", k)


def check_count(name: str, value: object) -> int:
    """``value``, if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InputError(f"{name} must be a whole number, got {_describe(value)}")
    count = index(value)
    if count < 1:
        raise InputError(f"{name} must be at least 1, got {count}")
    return count


def check_scale(name: str, value: object) -> float:
    """``value``, if it is a number that float32 can multiply and divide by."""
    number = _number(value)
    if not SMALLEST <= number <= LARGEST:
        raise InputError(f"{name} must be a number from {SMALLEST:g} to {LARGEST:g}, got {_describe(value)}")
    return number


def _number(value: object) -> float:
    """NaN for what is none."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan


def check_factor(name: str, value: object) -> float:
    """``value``, if it is 0 or a number that float32 can multiply and divide by."""
    number = _number(value)
    if number != 0 and not SMALLEST <= number <= LARGEST:
        raise InputError(
            f"{name} must be 0 or a number from {SMALLEST:g} to {LARGEST:g}, got {_describe(value)}"
        )
    return abs(number)  # of -0


def check_flag(name: str, value: object) -> None:
    """Raise unless ``value`` is true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {_describe(value)}")


def check_string(name: str, value: object) -> None:
    """Raise unless ``value`` is a string; it may be empty."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {_describe(value)}")


def check_seed(seed: object) -> int:
    """``seed``, if torch can use it."""
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex) or not 0 <= index(seed) < 2**63:
        raise InputError(f"seed must be a whole number from 0 to {2**63 - 1}, got {_describe(seed)}")
    return index(seed)


def check_types(kind: Any, given: Mapping[str, Any], where: str) -> None:
    """Raise if a value does not fit its field of a dataclass; whole numbers fit where any number does."""
    hints = get_type_hints(kind)
    for name, value in given.items():
        if not _fits(value, hints[name]):
            raise InputError(f"{where}: {name} must be {_named(hints[name])}, got {_describe(value)}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return isinstance(value, str)  # which of them, the dataclass checks
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, inner[1]) for each in value.values())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and -inf < value < inf
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return hint is Any or isinstance(value, hint)


def _named(hint: Any) -> str:
    """A type as people call it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_named(each) for each in inner if each is not type(None))
    if origin is tuple:
        return f"a list, each {_named(inner[0])}"
    if origin is dict:
        return "a table"
    names = {float: "a finite number", int: "a whole number", bool: "true or false"}
    return names.get(hint, "a string")


def with_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from JSON or TOML, which have lists where our dataclasses have tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def _check_encodable(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds a lone surrogate (U+{ord(text[error.start]):04X} at character {error.start}), "
            "which is no text: decode its source with the right encoding"
        ) from None


def _describe(value: object) -> str:
    if value is None:
        return "None"
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 40 else shown[:37] + '...'}"
