"""The part of a long text that matches a context best."""

from collections import Counter
from collections.abc import Sequence
from math import lcm

from tercet.text.matches import Match

SNIPPET = 300
"""About how many characters of a long text are shown."""
LONG = 400
"""Texts of at most this many characters are shown whole."""
NEAREST_SPACE = 30
"""How far a snippet is shortened so that it begins and ends with a whole word."""


def snippet(text: str, matches: Sequence[Match], *, length: int = SNIPPET) -> tuple[int, int]:
    """The start and end of the window with the most telling matches; the beginning if there are none.

    Each term counts once in a window, and the more it occurs in the text, the less.
    """
    if not matches:
        return 0, _before_space(text, length)
    first, last = _best_window(matches, length)
    best = matches[first], matches[last]
    middle = (best[0].start + best[1].end) // 2
    start = max(0, min(middle - length // 2, best[0].start, len(text) - length))
    end = min(len(text), max(start + length, best[0].end))
    return _after_space(text, start, best[0].start), _before_space(text, end, best[1].end)


def _best_window(matches: Sequence[Match], length: int) -> tuple[int, int]:
    """The first and the last match of the window with the largest weight; the earliest of equal ones."""
    occurrences = Counter(match.term for match in matches)
    multiple = lcm(*occurrences.values())  # whole numbers are added and subtracted without rounding
    weights = {term: multiple // count for term, count in occurrences.items()}
    inside: Counter[str] = Counter()
    weight, after, best = 0, 0, (0, 0, 0)
    for first, opening in enumerate(matches):
        while after <= first or (after < len(matches) and matches[after].end <= opening.start + length):
            term = matches[after].term
            weight += 0 if inside[term] else weights[term]
            inside[term] += 1
            after += 1
        if weight > best[0]:
            best = weight, first, after - 1
        inside[opening.term] -= 1
        weight -= 0 if inside[opening.term] else weights[opening.term]
    return best[1:]


def _after_space(text: str, start: int, latest: int) -> int:
    """The start of the first whole word, at most at ``latest``."""
    if start == 0 or text[start - 1].isspace():
        return start
    space = text.find(" ", start, min(latest, start + NEAREST_SPACE))
    return start if space < 0 else space + 1


def _before_space(text: str, end: int, earliest: int = 0) -> int:
    """The end of the last whole word, at least at ``earliest``."""
    if end >= len(text) or text[end].isspace():
        return end
    space = text.rfind(" ", max(earliest, end - NEAREST_SPACE), end)
    return end if space < 0 else space
