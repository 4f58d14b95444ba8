"""JSON and TOML files. Errors name the file and what is wrong with it."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any, cast

from tercet.errors import FileError, InputError, OutputError
from tercet.files.atomic import new_file, writing
from tercet.files.escapes import escaped
from tercet.files.parsing import RefusedJsonError, parse_json, parse_toml
from tercet.settings.limits import current_limits, raise_it

MAYBE_NOT_FINITE = re.compile(r"NaN|Infinity|[eE]\+?\d{3}|\d{300}")
"""Occurs in every JSON text with a number that is not finite, and rarely in others."""


def read_json(file: Path, *, finite: bool = True) -> dict[str, Any]:
    """The object in a JSON file.

    Args:
        finite: whether all numbers must be finite. Python reads NaN and infinity, which JSON does not have.
    """
    return cast("dict[str, Any]", _read_json(file, dict, finite=finite))


def read_json_list(file: Path) -> list[dict[str, Any]]:
    """The list in a JSON file."""
    return cast("list[dict[str, Any]]", _read_json(file, list, finite=True))


def read_json_if_exists(file: Path) -> dict[str, Any]:
    """The object in a JSON file, or an empty one if there is no such file."""
    return read_json(file) if file.is_file() else {}


def write_json(file: Path, content: object) -> None:
    """Write ``content`` as indented JSON, atomically."""
    try:
        text = json_text(content, indent=2)
    except OutputError as error:
        raise OutputError(f"cannot write {file}: {error}") from None
    with new_file(file, overwrite=True) as partial, writing(file):
        partial.write_text(text + "\n", encoding="utf-8")


def json_text(
    content: object, *, indent: int | None = None, default: Callable[[Any], object] | None = None
) -> str:
    """``content`` as JSON, with control characters escaped.

    JSON has no NaN and no infinity: these are errors that say where they are.

    Args:
        indent: spaces per level. Default: everything is on one line.
        default: converts values of types that JSON does not have. Default: such values are errors.
    """
    try:
        text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False, default=default)
    except RecursionError:
        raise OutputError("the content is nested too deeply for JSON") from None
    except (TypeError, ValueError) as error:
        found = next(not_finite_places(content), None) if "Out of range" in str(error) else None
        reason = str(error) if found is None else f"numbers in JSON must be finite, got {found}"
        raise OutputError(reason) from None
    return escaped(text)


def null_if_not_finite(content: Any) -> Any:
    """A copy of ``content`` in which None, null in JSON, replaces NaN and infinity."""
    if isinstance(content, float):
        return content if isfinite(content) else None
    if isinstance(content, dict):
        return {key: null_if_not_finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [null_if_not_finite(value) for value in content]
    return content


def not_finite_places(content: object, where: str = "") -> Iterator[str]:
    """The places of all numbers that are not finite, such as ``rows[0].score = nan``."""
    if isinstance(content, float) and not isfinite(content):
        yield f"{where.lstrip('.')} = {content}" if where else str(content)
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from not_finite_places(value, f"{where}.{key}")
    elif isinstance(content, list | tuple):
        for position, value in enumerate(content):
            yield from not_finite_places(value, f"{where}[{position}]")


def read_toml(file: Path, what: str = "recipe") -> dict[str, Any]:
    """The tables of a TOML file.

    Args:
        what: how errors call the file, such as ``recipe`` or ``task``.
    """
    try:
        return parse_toml(_read(file, "max_toml_bytes").decode("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{what} {file} does not exist") from None
    except OSError as error:
        raise InputError(f"cannot read {what} {file}: {error.strerror}") from None
    except FileError as error:
        raise InputError(f"{what} {error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{what} {file} is not valid TOML: {error}") from None


def _read_json(file: Path, kind: type, *, finite: bool) -> object:
    try:
        text = _read(file, "max_json_bytes").decode("utf-8")
        content = parse_json(text)
        if "\\ud" in text.lower():  # half of a character, which no message about it could contain
            json.dumps(content, ensure_ascii=False).encode()
    except FileNotFoundError:
        raise FileError(f"{file} is missing") from None
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror}") from None
    except RefusedJsonError as error:
        raise FileError(f"{file}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise FileError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(content, kind):
        raise FileError(f"{file} must contain a JSON {kind.__name__}, got {type(content).__name__}")
    strange = next(not_finite_places(content), None) if finite and MAYBE_NOT_FINITE.search(text) else None
    if strange is not None:
        raise FileError(f"numbers in {file} must be finite, got {strange}")
    return content


def _read(file: Path, limit: str) -> bytes:
    """The bytes of a file, at most as many as the limit of this name allows."""
    allowed: int = getattr(current_limits(), limit)
    with file.open("rb") as opened:
        content = opened.read(allowed + 1)
    if len(content) > allowed:
        raise FileError(f"{file} has more than {allowed:,} bytes: {raise_it(limit)}")
    return content
