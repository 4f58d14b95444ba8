"""Names of the API and commands in the text become links: ``tercet.load``, ``tercet train my.toml``."""

from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

import command_pages

COMMANDS_PAGE = "command-line"


class LinkCode(SphinxPostTransform):
    """Puts a link around each piece of code that is the name of something documented."""

    default_priority = 900

    def run(self, **_: Any) -> None:
        """Walk over the code in the text of a page; headings and links stay as they are."""
        for node in list(self.document.findall(nodes.literal)):
            if not isinstance(node.parent, nodes.title | nodes.reference | pending_xref):
                self._link(node)

    def _link(self, node: nodes.literal) -> None:
        target = self._object(node.astext()) or self._command(node.astext())
        if target is None or target[0] == self.env.docname:
            return
        page, anchor = target
        link = make_refnode(self.app.builder, self.env.docname, page, anchor, node.deepcopy())
        node.replace_self(link)

    def _object(self, text: str) -> tuple[str, str] | None:
        """The place of a documented name; a call counts as the name of what is called."""
        name = text.partition("(")[0]
        objects = self.env.domains.python_domain.objects
        for full in (name, f"tercet.{name}"):
            if full in objects and full.count(".") and name[:1].isalpha():
                return objects[full].docname, objects[full].node_id
        return None

    def _command(self, text: str) -> tuple[str, str] | None:
        """The heading of a command."""
        words = text.split()
        if words[:1] != ["tercet"]:
            return None
        found = next((words[:count] for count in (3, 2) if " ".join(words[:count]) in _commands()), None)
        return None if found is None else (COMMANDS_PAGE, "-".join(found))


@cache
def _commands() -> frozenset[str]:
    return frozenset(path for path, _ in command_pages.commands())


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(LinkCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
