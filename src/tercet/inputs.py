"""Checks of arguments, and values in messages. Errors name the argument, its position and its value."""

from collections.abc import Iterable, Sequence
from math import nan
from numbers import Real
from operator import index
from typing import Any, SupportsIndex

from tercet.errors import InputError
from tercet.records import Context
from tercet.settings.limits import ALWAYS_ALLOWED, current_limits, raise_it

SMALLEST, LARGEST = 1e-6, 1e6
"""Limits of a scale."""
SHOWN_CHARACTERS = 40
"""Characters of a value in a message."""


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_text(value: object, name: str) -> str:
    """``value``, if it is a non-empty string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {describe(value)}")
    if not value or value.isspace():
        raise InputError(f"{name} is empty: a text needs at least one character that is not white space")
    if len(value) > ALWAYS_ALLOWED:
        _check_length(value, name)
    if not value.isascii():
        check_encodable(value, name)
    return value


def _check_length(text: str, name: str) -> None:
    allowed = current_limits().max_text_characters
    if len(text) > allowed:
        raise InputError(
            f"{name} has {len(text):,} characters, and at most {allowed:,} are allowed: split it; "
            f"{raise_it('max_text_characters')}"
        )


def check_many(values: Iterable[object], name: str) -> Iterable[object]:
    """``values``, if it is an ordered collection other than a string."""
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {describe(values)}")
    return values


def check_candidates(candidates: Iterable[object]) -> list[str]:
    """The candidates as a list of valid strings, at least one."""
    checked = [
        check_text(text, f"candidate {position}")
        for position, text in enumerate(check_many(candidates, "candidates"))
    ]
    if not checked:
        raise InputError("there are no candidates: give at least one")
    return checked


def check_context(context: Any, name: str = "context") -> Context:
    """The context as a string or a non-empty tuple of turns."""
    if isinstance(context, str):
        return check_text(context, name)
    if isinstance(context, (bytes, dict)) or not hasattr(context, "__getitem__"):
        raise InputError(f"{name} must be a string or a list of turns, got {describe(context)}")
    turns = tuple(check_text(turn, f"turn {position} of {name}") for position, turn in enumerate(context))
    if not turns:
        raise InputError(f"{name} has no turns: give at least one")
    return turns


def check_contexts(contexts: Iterable[object]) -> list[Context]:
    """The contexts as a list, at least one."""
    checked = [
        check_context(context, f"context {position}")
        for position, context in enumerate(check_many(contexts, "contexts"))
    ]
    if not checked:
        raise InputError("there are no contexts: give at least one")
    return checked


def check_pairs(contexts: Iterable[object], candidates: Iterable[object]) -> tuple[list[Context], list[str]]:
    """Equally many contexts and candidates, at least one of each."""
    left, right = check_contexts(contexts), check_candidates(candidates)
    if len(left) != len(right):
        raise InputError(f"pairs need as many contexts as candidates, got {len(left)} and {len(right)}")
    return left, right


def check_k(k: int) -> int:
    """``k``, if it is a whole number of at least 1."""
    return check_count("k", k)


def check_count(name: str, value: object) -> int:
    """``value``, if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InputError(f"{name} must be a whole number, got {describe(value)}")
    count = index(value)
    if count < 1:
        raise InputError(f"{name} must be at least 1, got {count}")
    return count


def check_scale(name: str, value: object) -> float:
    """``value``, if it is a positive number that float32 can multiply and divide by."""
    number = _number(value)
    if not SMALLEST <= number <= LARGEST:
        raise InputError(f"{name} must be a number from {SMALLEST:g} to {LARGEST:g}, got {describe(value)}")
    return number


def _number(value: object) -> float:
    """The value as a float; NaN if it is not a number, or one that is too large for a float."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan
    except OverflowError:
        return nan


def check_factor(name: str, value: object) -> float:
    """``value``, if it is 0 or a positive number that float32 can multiply and divide by."""
    number = _number(value)
    if number != 0 and not SMALLEST <= number <= LARGEST:
        raise InputError(
            f"{name} must be 0 or a number from {SMALLEST:g} to {LARGEST:g}, got {describe(value)}"
        )
    return abs(number)  # -0.0 becomes 0.0


def check_threshold(value: object) -> float:
    """``value``, if it is a number; it may be infinite."""
    number = _number(value)
    if number != number:  # NaN: no score would reach it, and none would be below it
        raise InputError(f"threshold must be a number, got {describe(value)}")
    return number


def check_flag(name: str, value: object) -> None:
    """Raise unless ``value`` is a bool."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {describe(value)}")


def check_string(name: str, value: object) -> None:
    """Raise unless ``value`` is a string; it may be empty."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {describe(value)}")


def check_seed(seed: object) -> int:
    """``seed``, if it is a valid seed for torch."""
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex) or not 0 <= index(seed) < 2**63:
        raise InputError(f"seed must be a whole number from 0 to {2**63 - 1}, got {describe(seed)}")
    return index(seed)


def check_encodable(text: str, name: str) -> None:
    """Raise unless UTF-8 can encode ``text``."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds a lone surrogate (U+{ord(text[error.start]):04X} at character {error.start}), "
            "which is not valid text: decode the source with the right encoding"
        ) from None


def describe(value: object) -> str:
    """The type and the shortened representation of a value, for error messages."""
    if value is None:
        return "None"
    return f"{type(value).__name__} {shortened(repr(value), SHOWN_CHARACTERS)}"


def listed(values: Iterable[object], *, most: int | None = None, more: int = 0) -> str:
    """The representations of values, for messages; empty if there are none.

    Args:
        most: show at most this many values, shorten long ones, and say how many more there are. Default: all.
        more: the number of further values that are not among ``values``.
    """
    shown = [repr(value) for value in values]
    if most is not None:
        more += max(0, len(shown) - most)
        shown = [shortened(text, SHOWN_CHARACTERS) for text in shown[:most]]
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def shortened(text: str, length: int) -> str:
    """The first ``length`` characters of a text, and an ellipsis if there are more."""
    return text if len(text) <= length else text[:length] + "…"
