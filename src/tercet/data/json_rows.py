"""JSON Lines, and JSON arrays, to rows."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

from tercet.data.decoding import Lines
from tercet.errors import DataError
from tercet.files.parsing import RefusedJsonError, json_reason, parse_json
from tercet.inputs import describe, listed
from tercet.settings.limits import current_limits, raise_it


def json_line_rows(name: str, lines: Lines) -> Iterator[tuple[str, dict[str, Any]]]:
    """The line and the columns of each row: an object, or a string as the column ``text``.

    Args:
        name: how errors call the file.
    """
    for number, line in lines:
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            value = parse_json(line)
        except ValueError as error:
            raise DataError(f"{name}, {place}: {json_reason(error)}{_array_advice(line)}") from None
        if not isinstance(value, (dict, str)):
            raise DataError(
                f"{name}, {place}: a line must be a JSON object or string, got {type(value).__name__}"
                f"{_array_advice(line)}"
            )
        yield place, {"text": value} if isinstance(value, str) else value


def json_array_rows(name: str, lines: Lines) -> Iterator[tuple[str, dict[str, Any]]]:
    """The number and the columns of each element of an array, which is read as a whole."""
    for number, value in enumerate(_array(name, _whole(name, lines))):
        if not isinstance(value, (dict, str)):
            raise DataError(
                f"{name}, element {number}: an element must be a JSON object or string, got {describe(value)}"
            )
        yield f"element {number}", {"text": value} if isinstance(value, str) else value


def _whole(name: str, lines: Lines) -> str:
    """All lines as one text, within the limit."""
    allowed, text = current_limits().max_json_bytes, StringIO()
    for _, line in lines:
        text.write(f"{line}\n")
        if text.tell() > allowed:
            raise DataError(
                f"{name} has more than {allowed:,} bytes, and a JSON array is read as a whole: write a row "
                f"on each line (.jsonl); {raise_it('max_json_bytes')}"
            )
    return text.getvalue()


def _array(name: str, text: str) -> list[Any]:
    try:
        value = parse_json(text)
    except RefusedJsonError as error:
        raise DataError(f"{name}, line {error.lineno}: {error.msg}") from None
    except json.JSONDecodeError as error:
        advice = ": if each line is an object, use --format jsonl" if error.msg == "Extra data" else ""
        raise DataError(f"{name}, line {error.lineno}: not valid JSON ({error.msg}){advice}") from None
    except ValueError as error:
        raise DataError(f"{name}: {json_reason(error)}") from None
    if isinstance(value, dict):
        raise DataError(f"{name}: a JSON file must be an array of rows, got an object{_inner_list(value)}")
    if not isinstance(value, list):
        raise DataError(f"{name}: a JSON file must be an array of rows, got {describe(value)}")
    return value


def _inner_list(value: dict[str, Any]) -> str:
    """Where the rows of an object seem to be."""
    lists = [key for key, inner in value.items() if isinstance(inner, list)]
    if len(lists) != 1:
        return f" with the keys {listed(value) or 'none'}: write its rows to a file as an array"
    key, count = lists[0], len(value[lists[0]])
    return (
        f" whose key {key!r} holds a list of {count:,}: write that list alone to a file (jq '.[\"{key}\"]')"
    )


def _array_advice(line: str) -> str:
    return ": for one array of rows, use --format json" if line.lstrip().startswith("[") else ""
