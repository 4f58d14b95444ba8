"""JSON and TOML files. Errors name the file and what is wrong with it."""

import json
import tomllib
from pathlib import Path
from typing import Any, cast

from tercet.errors import FileError, InputError
from tercet.files.atomic import new_file, writing


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return cast("dict[str, Any]", _read_json(file, dict))


def read_json_list(file: Path) -> list[dict[str, Any]]:
    """The list in a JSON file."""
    return cast("list[dict[str, Any]]", _read_json(file, list))


def read_json_if_exists(file: Path) -> dict[str, Any]:
    """The object in a JSON file, or an empty one if there is no such file."""
    return read_json(file) if file.is_file() else {}


def write_json(file: Path, content: object) -> None:
    """Write ``content`` as indented JSON, atomically."""
    with new_file(file, overwrite=True) as partial, writing(file):
        partial.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_toml(file: Path, what: str = "recipe") -> dict[str, Any]:
    """The tables of a TOML file.

    Args:
        what: how errors call the file, such as ``recipe`` or ``task``.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{what} {file} does not exist") from None
    except OSError as error:
        raise InputError(f"cannot read {what} {file}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{what} {file} is not valid TOML: {error}") from None


def _read_json(file: Path, kind: type) -> object:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"{file} is missing") from None
    except ValueError as error:
        raise FileError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(content, kind):
        raise FileError(f"{file} must contain a JSON {kind.__name__}, got {type(content).__name__}")
    return content
