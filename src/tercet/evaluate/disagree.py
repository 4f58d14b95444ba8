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


def disagreements(ours: Result, theirs: Result) -> list[Disagreement]:
    """The cases where our loss is lower, those with the largest gap first."""
    gaps = theirs.losses - ours.losses
    order = [int(place) for place in np.argsort(-gaps, kind="stable") if gaps[place] > 0]
    return [
        Disagreement(
            as_text(ours.case(place).context),
            ours.case(place).wanted,
            ours.case(place).got,
            theirs.case(place).got,
        )
        for place in order
    ]
