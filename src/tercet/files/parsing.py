"""JSON and TOML texts to values: keys are unique, and depth and keys are within the limits."""

import json
import re
import tomllib
from typing import Any

from tercet.settings.limits import Limits, current_limits, raise_it

JSON_TOKENS = re.compile(r'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")(?P<colon>\s*:)?|[\[\]{}]', re.DOTALL)
TOML_TOKENS = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n,=.]', re.DOTALL
)
UNREADABLE = "values are nested more deeply than Python can read"
LARGE_INTEGER = "an integer has more than 64 bits"


class RefusedJsonError(json.JSONDecodeError):
    """The JSON is valid, but has a key twice or exceeds a limit; ``msg`` says which."""


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: the text is not valid JSON; mostly ``json.JSONDecodeError``, which knows the line.
        RefusedJsonError: the text has a key twice in one object, or exceeds a limit.
    """
    limits = current_limits()
    try:
        value = DECODER.decode(text)
    except (_RepeatedKeyError, RecursionError):
        raise _refused(text, limits) from None
    if _excess(value, limits):
        raise _refused(text, limits)
    return value


def json_reason(error: ValueError) -> str:
    """What is wrong with a JSON text, for messages that name its file and line."""
    return error.msg if isinstance(error, RefusedJsonError) else f"not valid JSON ({error})"


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text, within the limits; ``tomllib.TOMLDecodeError`` otherwise."""
    limits = current_limits()
    line = _deep_toml_line(text, limits.max_depth)  # before parsing, whose time is quadratic in the depth
    if line is not None:
        raise tomllib.TOMLDecodeError(f"{_deep(limits)} (at line {line})")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(UNREADABLE) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise tomllib.TOMLDecodeError(LARGE_INTEGER) from None
    excess = _excess(table, limits) or (LARGE_INTEGER if _has_large_integer(table) else "")
    if excess:
        raise tomllib.TOMLDecodeError(excess)
    return table


def _has_large_integer(table: dict[str, Any]) -> bool:
    """Whether a table contains an integer of more than 64 bits, which TOML does not have."""
    left: list[Any] = [table]
    while left:
        value = left.pop()
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return True
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return False


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _excess(value: Any, limits: Limits) -> str:
    """Which limit a value exceeds, found without recursion; empty if none."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limits.max_depth):
        if not level:
            return ""
        if any(
            len(key) > limits.max_key_characters for each in level if isinstance(each, dict) for key in each
        ):
            return _long_key(limits)
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
    return _deep(limits) if level else ""


def _refused(text: str, limits: Limits) -> RefusedJsonError:
    """The error about the first place at which a JSON text has a key twice or exceeds a limit."""
    open_keys: list[set[str]] = []  # the keys of each list or object around the current token
    for token in JSON_TOKENS.finditer(text):
        if token[0] in "[{":
            open_keys.append(set())
            if len(open_keys) > limits.max_depth:
                return RefusedJsonError(_deep(limits), text, token.start())
        elif token[0] in "]}":
            open_keys.pop()
        elif token["colon"]:
            key = json.loads(token["string"])
            if len(key) > limits.max_key_characters:
                return RefusedJsonError(_long_key(limits), text, token.start())
            if key in open_keys[-1]:
                return RefusedJsonError(f"the key {key!r} occurs twice: keep one", text, token.start())
            open_keys[-1].add(key)
    return RefusedJsonError(UNREADABLE, text, 0)


def _deep_toml_line(text: str, max_depth: int) -> int | None:
    """The line in which arrays, inline tables and dotted keys exceed the depth; None if none does."""
    line, brackets, dots = 1, 0, 0
    for token in TOML_TOKENS.finditer(text):
        sign = token[0]
        brackets += (sign in ("[", "{")) - (sign in ("]", "}"))
        dots = dots + 1 if sign == "." else 0 if sign in ("\n", ",", "=", "{") else dots
        if brackets + dots >= max_depth:
            return line
        line += sign.count("\n")
    return None


def _deep(limits: Limits) -> str:
    return f"values are nested more than {limits.max_depth:,} levels deep: {raise_it('max_depth')}"


def _long_key(limits: Limits) -> str:
    length = f"{limits.max_key_characters:,}"
    return f"a key has more than {length} characters: shorten it; {raise_it('max_key_characters')}"
