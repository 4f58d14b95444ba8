"""Checks of what users hand in; every error names the position of what is wrong."""

from collections.abc import Iterable, Sequence

from tercet.errors import InputError
from tercet.records import Context


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_text(value: object, name: str) -> str:
    """``value``, if it is a string with something in it that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {_describe(value)}")
    if not value or value.isspace():
        raise InputError(f"{name} is empty: every text needs at least one visible character")
    if not value.isascii():
        _check_encodable(value, name)
    return value


def check_candidates(candidates: Iterable[object]) -> list[str]:
    """The candidates as a list of usable strings, at least one."""
    if isinstance(candidates, (str, bytes)):
        raise InputError(f"candidates must be a list of strings, got {_describe(candidates)}")
    checked = [
        check_text(text, f"candidate {position}") for position, text in enumerate(_iterate(candidates))
    ]
    if not checked:
        raise InputError("there are no candidates: give at least one")
    return checked


def check_context(context: object, name: str = "context") -> Context:
    """A string, or a non-empty tuple of turns."""
    if isinstance(context, str):
        return check_text(context, name)
    if not isinstance(context, (list, tuple)):
        raise InputError(f"{name} must be a string or a list of turns, got {_describe(context)}")
    if not context:
        raise InputError(f"{name} has no turns: give at least one")
    return tuple(check_text(turn, f"turn {position} of {name}") for position, turn in enumerate(context))


def check_contexts(contexts: Iterable[object]) -> list[Context]:
    """Many contexts, at least one."""
    if isinstance(contexts, (str, bytes)):
        raise InputError(f"contexts must be a list of contexts, got {_describe(contexts)}")
    checked = [
        check_context(context, f"context {position}") for position, context in enumerate(_iterate(contexts))
    ]
    if not checked:
        raise InputError("there are no contexts: give at least one")
    return checked


def check_top(k: int) -> int:
    """``k``, if it asks for at least one."""
    if isinstance(k, bool) or not isinstance(k, int):
        raise InputError(f"k must be a whole number, got {_describe(k)}")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    return k


def _iterate(values: Iterable[object]) -> Iterable[object]:
    try:
        return iter(values)
    except TypeError:
        raise InputError(f"a list of texts was expected, got {_describe(values)}") from None


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
