"""``{picture} NAME.svg``: a drawing of ``docs/pictures`` within the page, which gives it its colours."""

from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).parents[1] / "pictures"


class Picture(SphinxDirective):
    """Drawings side by side, with a description for those who cannot see them, and a caption."""

    required_arguments = 1
    optional_arguments = 3
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """The figure."""
        drawings = "".join(self._drawing(name, position) for position, name in enumerate(self.arguments))
        figure = nodes.container(classes=["figure"])
        figure += nodes.raw("", f'<div class="picture">{drawings}</div>', format="html")
        if self.content:
            caption = nodes.container(classes=["caption"])
            self.state.nested_parse(self.content, self.content_offset, caption)
            figure += caption
        return [figure]

    def _drawing(self, name: str, position: int) -> str:
        """A drawing; the first one has the description, the others are hidden from screen readers."""
        file = FOLDER / name
        self.env.note_dependency(str(file))
        svg = file.read_text(encoding="utf-8")
        if position:
            return svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
        label = nodes.make_id(file.stem)
        head, tail = svg.replace("<svg ", f'<svg role="img" aria-labelledby="{label}" ', 1).split(">", 1)
        return f'{head}><title id="{label}">{escape(self.options["alt"])}</title>{tail}'


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
