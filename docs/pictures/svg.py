"""Shapes of the drawings, as SVG that takes its colours from the page."""

from html import escape

INK = "currentColor"
PAPER, SOFT = "var(--paper, #ffffff)", "var(--soft, #eef1f5)"
BI, POLY, CROSS = "var(--accent-bi, #2f6fb7)", "var(--accent-poly, #b3541e)", "var(--accent-cross, #2c7a51)"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif"


class Drawing:
    """A drawing of a given size; each method adds a shape."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.shapes: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        label: str = "",
        *,
        colour: str = INK,
        fill: str = PAPER,
        size: int = 14,
    ) -> None:
        """A rounded box with a label in its middle."""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" '
            f'stroke="{colour}" stroke-width="1.5"/>'
        )
        if label:
            lines = label.split("\n")
            for number, line in enumerate(lines):
                middle = y + height / 2 + size * (0.36 + 1.2 * (number - (len(lines) - 1) / 2))
                self.text(x + width / 2, middle, line, size=size)

    def bar(
        self, x: float, y: float, width: float, height: float, *, fill: str, opacity: float = 1.0
    ) -> None:
        """A filled bar without a border."""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{fill}" '
            f'fill-opacity="{opacity:.2g}"/>'
        )

    def dot(
        self, x: float, y: float, radius: float, *, fill: str, stroke: str = "none", opacity: float = 1.0
    ) -> None:
        """A point."""
        self.shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{stroke}" '
            f'fill-opacity="{opacity:.2g}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 14,
        colour: str = INK,
        anchor: str = "middle",
        weight: str = "normal",
    ) -> None:
        """A line of text."""
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>'
        )

    def line(
        self,
        x: float,
        y: float,
        to_x: float,
        to_y: float,
        *,
        colour: str = INK,
        dashed: bool = False,
        width: float = 1.5,
        opacity: float = 1.0,
    ) -> None:
        """A straight line."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.shapes.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{colour}" '
            f'stroke-width="{width:g}" stroke-opacity="{opacity:.2g}"{dashes}/>'
        )

    def arrow(self, x: float, y: float, to_x: float, to_y: float, *, colour: str = INK) -> None:
        """A line with a point at its end; horizontal or vertical."""
        self.line(x, y, to_x, to_y, colour=colour)
        along_x = (to_x > x) - (to_x < x)
        along_y = (to_y > y) - (to_y < y)
        left = f"{to_x - 7 * along_x - 4 * along_y:g},{to_y - 7 * along_y - 4 * along_x:g}"
        right = f"{to_x - 7 * along_x + 4 * along_y:g},{to_y - 7 * along_y + 4 * along_x:g}"
        self.shapes.append(f'<polygon points="{to_x:g},{to_y:g} {left} {right}" fill="{colour}"/>')

    def svg(self) -> str:
        """The drawing as a file."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">\n'
        return head + "\n".join(self.shapes) + "\n</svg>\n"
