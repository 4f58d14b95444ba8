"""The tutorials of docs/databases.md run, and their expressions have the values that the page shows."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.databases.places import Places

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "databases.md"
TUTORIALS = {
    "postgres": ("## PostgreSQL", "postgresql://tercet@localhost/shop/faq"),
    "qdrant": ("## Qdrant", "qdrant://localhost:6333/faq"),
}
"""The title of each tutorial, and the address that it uses."""


@pytest.mark.parametrize("kind", list(TUTORIALS))
def test_the_tutorial_shows_what_happens(kind: str, places: Places) -> None:
    title, address = TUTORIALS[kind]
    section = PAGE.read_text(encoding="utf-8").partition(f"\n{title}\n")[2]
    (code,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    run(code.replace(address, places.new(kind)))


def run(code: str) -> None:
    """Execute statements; an expression with a comment has the value that the comment shows."""
    names: dict[str, Any] = {}
    pending: list[str] = []
    for line in code.splitlines():
        expression, _, shown = line.partition("  # ")
        if not shown:
            pending.append(line)
            continue
        exec("\n".join(pending), names)
        pending = []
        assert repr(str(value) if isinstance(value := eval(expression, names), str) else value) == shown, line
    exec("\n".join(pending), names)
