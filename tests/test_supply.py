"""Every dependency has a reason, and nothing in the package turns data into code."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
BASE = "base"
UNSAFE = {"allow_pickle": True, "trust_remote_code": True, "weights_only": False, "autoescape": False}
"""Arguments that would run code from a file, or put a text into a page unescaped. Ruff checks functions."""


def declared() -> set[tuple[str, str]]:
    """The packages of ``pyproject.toml``, each with its extra."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    base = settings["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    groups = {BASE: base, **settings["project"]["optional-dependencies"]}
    return {(package_of(line), extra) for extra, lines in groups.items() for line in lines}


def package_of(requirement: str) -> str:
    """The name in ``name>=1.0``, in the spelling of the package index."""
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def rows() -> Iterator[list[str]]:
    """The cells of each row of the table of dependencies, without its head."""
    table = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_dependency_is_listed_with_its_extras_and_no_row_is_stale() -> None:
    listed = {(package_of(cells[0]), extra) for cells in rows() for extra in cells[1].split(", ")}
    assert listed - declared() == set(), "remove these from docs/dependencies.md"
    assert declared() - listed == set(), "add these to docs/dependencies.md, with the reason"


def test_every_dependency_is_listed_once_with_a_reason_and_a_licence() -> None:
    names = [cells[0] for cells in rows()]
    assert names == sorted(set(names))
    assert [cells[0] for cells in rows() if len(cells) != 4 or not all(cells)] == []


def unsafe_arguments(tree: ast.AST) -> list[str]:
    """The arguments of calls, and of defaults, that switch a safeguard off."""
    pairs = [(node.arg, node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    return [
        f"line {value.lineno}: {name}={ast.unparse(value)}"
        for name, value in pairs
        if name in UNSAFE and not (isinstance(value, ast.Constant) and value.value is not UNSAFE[name])
    ]


@pytest.mark.parametrize("safe", ["f(allow_pickle=False)", "load(weights_only=True)", "f(pickle=True)"])
def test_safe_arguments_are_accepted(safe: str) -> None:
    assert unsafe_arguments(ast.parse(safe)) == []


@pytest.mark.parametrize("unsafe", ["f(allow_pickle=True)", "f(weights_only=False)", "f(autoescape=chosen)"])
def test_unsafe_arguments_are_found(unsafe: str) -> None:
    assert len(unsafe_arguments(ast.parse(unsafe))) == 1


def test_no_source_file_switches_a_safeguard_off() -> None:
    found = {file.name: unsafe_arguments(ast.parse(file.read_text(encoding="utf-8"))) for file in SOURCES}
    assert {name: lines for name, lines in found.items() if lines} == {}
