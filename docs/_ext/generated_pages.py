"""Fills the marks ``<!-- generated: NAME ARGUMENT -->`` of a page with Markdown made from the code."""

import re
from collections.abc import Callable
from typing import Any

import command_pages
import repository_links
import settings_pages

MARK = re.compile(r"^<!-- generated: (\w+) ?([\w./-]*) -->$", re.MULTILINE)
WRITERS: dict[str, Callable[..., str]] = {
    "settings": settings_pages.settings,
    "installed": settings_pages.installed,
    "commands": command_pages.reference,
}


def root_file(name: str) -> str:
    """A file at the root of the repository."""
    file = repository_links.DOCS.parent / name
    return repository_links.from_root(file.read_text(encoding="utf-8"))


def other_pages() -> str:
    """A table of contents of the pages that the home page does not name."""
    named = set(
        re.findall(
            r"^[\w/-]+$", (repository_links.DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    others = sorted(
        each.stem for each in repository_links.DOCS.glob("*.md") if each.stem not in named | {"index"}
    )
    pages = "\n".join(others)
    return f"```{{toctree}}\n:hidden:\n:caption: Scale out\n\n{pages}\n```" if others else ""


WRITERS.update(file=root_file, other_pages=other_pages)


def fill(text: str) -> str:
    """The page with what its marks stand for."""
    return MARK.sub(lambda mark: WRITERS[mark[1]](*filter(None, [mark[2]])), text)


def setup(app: Any) -> dict[str, bool]:
    """Fill each page when it is read."""
    app.connect("source-read", lambda app, _, source: source.__setitem__(0, fill(source[0])))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
