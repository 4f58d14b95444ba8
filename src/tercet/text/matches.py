"""Which characters of a text match a context: equal words, or the terms of a lexical index."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias
from unicodedata import category

from tercet.text.cjk import CJK, bigrams

Analyzer: TypeAlias = Callable[[str], Iterable[str]]
"""A text to the terms under which it is indexed."""

WORD = re.compile(r"\w+")
MIN_LENGTH = 3
"""Shorter words match nearly everywhere. Words with a digit, such as "5G", may be shorter."""


@dataclass(frozen=True, slots=True)
class Match:
    """The characters from ``start`` to ``end`` of a text, and the term that they match."""

    start: int
    end: int
    term: str


def equal_words(text: str, context: str) -> list[Match]:
    """The words of a text that also occur in the context, in upper or lower case."""
    wanted = {word for word in WORD.findall(context.casefold()) if _is_telling(word)}
    found = ((each, each.group().casefold()) for each in WORD.finditer(text))
    return [Match(each.start(), each.end(), word) for each, word in found if word in wanted]


def equal_terms(text: str, context: str, analyze: Analyzer) -> list[Match]:
    """The words of a text that have a term in common with the context; bigrams in CJK text.

    Args:
        analyze: the analyser of the lexical index.
    """
    wanted = set(analyze(context))
    return [match for start, word in _words(text) for match in _matches(start, word, wanted, analyze)]


def _words(text: str) -> Iterator[tuple[int, str]]:
    """The runs of letters and digits, and those of CJK characters, with their positions."""
    start = 0
    for kind, run in groupby(text, key=_kind):
        word = "".join(run)
        if kind:
            yield start, word
        start += len(word)


def _kind(character: str) -> str:
    """Marks belong to words, because vowels of Indic scripts are marks."""
    if CJK.match(character):
        return "cjk"
    return "word" if character.isalnum() or category(character).startswith("M") else ""


def _matches(start: int, word: str, wanted: set[str], analyze: Analyzer) -> Iterator[Match]:
    if CJK.match(word):
        for position, bigram in enumerate(bigrams(word), start=start):
            if bigram in wanted:
                yield Match(position, position + len(bigram), bigram)
        return
    terms = [term for term in analyze(word) if term in wanted]
    if terms and _is_telling(word):
        yield Match(start, start + len(word), terms[0])


def _is_telling(word: str) -> bool:
    return len(word) >= MIN_LENGTH or any(map(str.isdigit, word)) or CJK.match(word) is not None
