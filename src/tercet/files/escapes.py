r"""Control characters as ``\u001b`` and the like: JSON reads them back, and a terminal only shows them."""

import json
import re

UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters other than line feeds, line separators, characters that reverse the order of others,
and halves of characters, which no file can contain."""


def escaped(text: str) -> str:
    """``text`` with each unsafe character as JSON escapes it; of a JSON text, one with the same content."""
    return UNSAFE.sub(_escape, text)


def ascii_only(text: str) -> str:
    """``text`` with everything but ASCII as JSON escapes it."""
    return re.sub(r"[^\x00-\x7f]", _escape, text)


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
