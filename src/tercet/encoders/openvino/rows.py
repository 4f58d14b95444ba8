"""Texts side by side in rows of tokens, so that a batch of mixed lengths has little padding.

Attention is limited to a text by a mask. A few widths serve all lengths, so there are few shapes.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tercet.records import Ints

STEPS = ((128, 8), (256, 16), (1 << 62, 32))
"""Maximum length and step: widths are multiples of the step."""

SHARED_WIDTH = 128
"""Maximum width of a row with several texts."""

ATTENDED = 1000
"""Attention over this many tokens costs a token as much as all other layers do."""

LONGEST_TO_SHORTEST = 4
"""Texts that are longer by this factor are not in one batch, because their states are padded at the end."""


class Rows(NamedTuple):
    """Where the tokens of a batch are, in a grid of rows."""

    number: int
    """R, the number of rows."""
    width: int
    """W, the tokens per row."""
    starts: Ints
    """``[B]``: the position of each text's first token in the flattened rows."""


def in_rows(lengths: Sequence[int]) -> Rows:
    """Rows for texts of these lengths, with the width at which the batch takes the least time."""
    longest = padded_length(max(lengths))
    widths = range(longest, max(SHARED_WIDTH, longest) + 1, STEPS[0][1])
    return _placed(lengths, min(widths, key=lambda width: _cost(lengths, width)))


def _cost(lengths: Sequence[int], width: int) -> float:
    """The time that rows of this width take, in tokens without attention, if all lengths are similar."""
    per_row = width * len(lengths) // sum(lengths)
    rows = -(-len(lengths) // per_row)
    return rows * width * (1 + width / ATTENDED)


def _placed(lengths: Sequence[int], width: int) -> Rows:
    """Each text, longest first, in the row with the least room that is enough."""
    room: list[tuple[int, int]] = []  # room and number of each row, smallest room first
    starts = np.zeros(len(lengths), dtype=np.int64)
    count = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        found = bisect_left(room, (lengths[place], 0))
        if found == len(room):
            left, row = width, count
            count += 1
        else:
            left, row = room.pop(found)
        starts[place] = row * width + width - left
        insort(room, (left - lengths[place], row))
    return Rows(count, width, starts)


def similar_lengths(lengths: Sequence[int]) -> list[list[int]]:
    """The positions of texts, longest first, in groups of which no text is far longer than another."""
    groups: list[list[int]] = []
    shortest = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if not groups or lengths[place] < shortest:
            groups.append([])
            shortest = lengths[place] // LONGEST_TO_SHORTEST
        groups[-1].append(place)
    return groups


def padded_length(tokens: int) -> int:
    """The width of a row for a text of ``tokens`` tokens."""
    step = next(step for most, step in STEPS if tokens <= most)
    return tokens + -tokens % step
