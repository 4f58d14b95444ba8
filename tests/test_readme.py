"""The README shows real output, real commands and real files."""

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.cli.command import tercet

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = sorted(
    {
        line.partition("#")[0].strip()
        for kind, block in BLOCKS
        if not kind
        for line in block.splitlines()
        if line.startswith("tercet ")
    }
)


def test_the_first_example_prints_what_is_shown() -> None:
    position = next(number for number, (kind, _) in enumerate(BLOCKS) if kind == "python")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(BLOCKS[position][1], "README.md", "exec"), {})
    assert printed.getvalue() == BLOCKS[position + 1][1]


def test_the_first_example_is_short_and_comes_early() -> None:
    start = TEXT[: TEXT.index("```python")].count("\n") + 1
    lines = next(block for kind, block in BLOCKS if kind == "python").splitlines()
    assert len(lines) <= 12
    assert start + len(lines) < 25


def test_the_readme_is_short() -> None:
    assert len(TEXT.split()) <= 900


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_exists(command: str) -> None:
    _, *words = shlex.split(command)
    names = [words[0]] if words[0] not in ("index", "data", "new") else words[:2]
    shown = tercet(*names, "--help")
    assert shown.returncode == 0, command
    for option in (word for word in words if word.startswith("-")):
        assert option in shown.stdout, command


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
