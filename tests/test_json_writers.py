"""JSON is written by ``json_text``, which refuses NaN and escapes control characters."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "tercet"

WRITERS = {
    "dump",
    "dumps",
    "JSONEncoder",
    "JSONResponse",
    "ORJSONResponse",
    "UJSONResponse",
    "model_dump_json",
    "to_json",
    "write_json",
}
"""Names of functions and classes that make JSON, in ``json``, ``orjson``, pydantic, pandas and FastAPI."""

OWN = "tercet.files.structured"
"""The module whose functions refuse NaN, under names that others may have too."""

EXCEPTIONS = {
    ("files/structured.py", "json_text"): "the function itself",
    ("files/structured.py", "_read_json"): "looks for halves of characters in what was read",
    ("files/escapes.py", "_escape"): "the escape of one character",
    ("files/digest.py", "rows_digest"): "a digest; rows of a file may have NaN",
    ("scorers/fingerprint.py", "fingerprint"): "a digest",
    ("index/items.py", "row_of"): "refuses NaN and halves of characters, which json_text would escape",
    ("client/calls.py", "_json"): "refuses NaN and halves of characters, which json_text would escape",
    ("serve/json_body.py", "json_bytes"): "checked with json_text where it may contain NaN",
}
"""The functions that may call a writer, with the reason."""


def calls(tree: ast.AST, function: str = "<module>") -> Iterator[tuple[str, str]]:
    """The function that contains it, and the name, for each use of a writer of JSON that is not our own."""
    own = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == OWN
        for alias in node.names
    }
    yield from _calls(tree, function, own)


def _calls(node: ast.AST, function: str, own: set[str]) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    name = _name(node)
    if name in WRITERS and name not in own:
        yield function, name
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, function, own)


def _name(node: ast.AST) -> str:
    """The name that a node uses or imports; empty if there is none."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return name
    return ""


def writers() -> set[tuple[str, str]]:
    """The files and functions of the package that make JSON."""
    return {
        (file.relative_to(PACKAGE).as_posix(), function)
        for file in PACKAGE.rglob("*.py")
        for function, _ in calls(ast.parse(file.read_text(encoding="utf-8")))
    }


@pytest.mark.parametrize(
    "source",
    [
        "import json\ndef f(x): return json.dumps(x)",
        "import json as j\ndef f(x, file): j.dump(x, file)",
        "from json import dumps\ndef f(x): return dumps(x)",
        "from json import dumps as text\ndef f(x): return text(x)",
        "import orjson\ndef f(x): return orjson.dumps(x)",
        "import json\ndef f(x): return map(json.dumps, x)",
        "def f(model): return model.model_dump_json()",
        "from elsewhere import write_json\ndef f(x): write_json(x)",
    ],
)
def test_another_way_to_write_json_is_found(source: str) -> None:
    assert list(calls(ast.parse(source)))


def test_the_functions_that_refuse_nan_are_allowed() -> None:
    source = f"from {OWN} import json_text, write_json\ndef f(x, file): write_json(file, json_text(x))"
    assert list(calls(ast.parse(source))) == []


def test_json_is_written_by_one_function() -> None:
    found = writers()
    assert found - set(EXCEPTIONS) == set(), "use json_text or write_json of tercet.files.structured"
    assert set(EXCEPTIONS) - found == set(), "remove these from EXCEPTIONS"
