"""Where two models disagree on a task."""

from typing import NamedTuple

import numpy as np

from tercet.evaluate.results import Result
from tercet.records import as_text


class Disagreement(NamedTuple):
    """A case that one model did better than another."""

    context: str
    wanted: str
    ours: str
    theirs: str


def better_places(ours: Result, theirs: Result) -> list[int]:
    """The cases where our loss is lower, those with the largest gap first."""
    gaps = theirs.losses - ours.losses
    return [int(place) for place in np.argsort(-gaps, kind="stable") if gaps[place] > 0]


def disagreement(ours: Result, theirs: Result, place: int) -> Disagreement:
    """One of them."""
    mine, other = ours.case(place), theirs.case(place)
    return Disagreement(as_text(mine.context), mine.wanted, mine.got, other.got)
