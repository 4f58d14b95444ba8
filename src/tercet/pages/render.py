"""HTML pages from Jinja2 templates; every value is escaped, and pages open offline."""

from base64 import b64encode
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """The page ``templates/NAME.html`` filled with values."""
    return _environment().get_template(f"{template}.html").render(**values)


def png_url(picture: bytes) -> str:
    """A PNG picture as a data URL, so that a page needs no other file."""
    return f"data:image/png;base64,{b64encode(picture).decode()}"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("tercet.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
