"""Links that lead out of ``docs/`` become links to the page that includes the file, or plain text."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

DOCS = Path(__file__).parents[1]
PAGES = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "LICENSE": "index",
    "README.md": "index",
    "SECURITY.md": "security",
}
"""The page of the site for each file at the root of the repository."""
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def from_root(text: str) -> str:
    """The Markdown of a file at the root, with its links as a page in ``docs/`` would write them."""

    def moved(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if target in PAGES:
            return f"]({PAGES[target]}.md{anchor})"
        inside = target.removeprefix("docs/")
        return f"]({inside if inside != target else '../' + target}{anchor})"

    return LINK.sub(moved, text)


class Links(SphinxTransform):
    """Replaces each link to a file of the repository that is no page."""

    default_priority = 5

    def apply(self, **_: Any) -> None:
        """Walk over the links of a page."""
        page = Path(self.env.doc2path(self.env.docname))
        for node in list(self.document.findall(addnodes.download_reference)):
            _replace(node, page.parent / node["reftarget"])
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") == "myst":
                target = node["reftarget"].partition("#")[0]
                is_page = node.get("refdomain") == "doc"  # an absolute path without its suffix
                _replace(node, Path(f"/{target}.md") if is_page else page.parent / target)


def _replace(node: nodes.Element, file: Path) -> None:
    """A link to the page of a file at the root, or the text of the link if the file is not on the site."""
    try:
        name = file.resolve().relative_to(DOCS.parent).as_posix()
    except ValueError:
        return
    if name in PAGES:
        link = addnodes.pending_xref(
            "", refdomain="std", reftype="doc", reftarget=f"/{PAGES[name]}", refexplicit=True
        )
        link += nodes.inline("", node.astext(), classes=["xref", "doc"])
        node.replace_self(link)
    elif not name.startswith("docs/") and file.exists():
        text = node.astext()
        kept = nodes.inline("", text) if text != name else nodes.literal("", name)
        node.replace_self(kept if "/" in text or text == name else [kept, nodes.Text(f" ({name})")])


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(Links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
