"""The words of a text, as character spans, and the text without some of them."""

import re
from typing import TypeAlias

from tercet.text.cjk import UNSPACED

Span: TypeAlias = tuple[int, int]
"""Where characters start and end in a text."""

WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


def word_spans(text: str) -> list[Span]:
    """The words between spaces; each character of Japanese and Chinese counts as a word."""
    return [found.span() for found in WORD.finditer(text)]


def without_span(text: str, span: Span) -> str:
    """``text`` without some of its characters, and without the spaces that would then be doubled."""
    before, after = text[: span[0]], text[span[1] :]
    if not after:
        return before.rstrip()
    return before + (after.lstrip() if not before or before[-1].isspace() else after)


def grouped(spans: list[Span], most: int) -> list[Span]:
    """At most ``most`` spans: if there are more, neighbours are joined in groups of equal size."""
    size = -(-len(spans) // most)
    groups = (spans[start : start + size] for start in range(0, len(spans), size or 1))
    return [(group[0][0], group[-1][1]) for group in groups]
