"""Where sentences end."""

import re

SENTENCE_ENDS = re.compile(r"(?<=[.!?。？！])\s+|\n+")
"""Good enough for pairs of neighbours and for chunks: a wrong split makes a short sentence."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them."""
    return [part for part in (part.strip() for part in SENTENCE_ENDS.split(text)) if part]


def sentence_starts(text: str) -> list[int]:
    """The positions of the first characters of all sentences but the first."""
    return [match.end() for match in SENTENCE_ENDS.finditer(text)]
