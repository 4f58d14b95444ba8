"""Cases on which two models disagree."""

from typing import NamedTuple

import numpy as np

from tercet.evaluate.results import Result
from tercet.records import as_text


class Disagreement(NamedTuple):
    """A case, its expected result, and the results of two models."""

    context: str
    wanted: str
    ours: str
    theirs: str


def better_cases(ours: Result, theirs: Result) -> list[int]:
    """Positions of the cases on which our loss is lower, largest difference first."""
    gaps = theirs.losses - ours.losses
    return [int(position) for position in np.argsort(-gaps, kind="stable") if gaps[position] > 0]


def disagreement(ours: Result, theirs: Result, position: int) -> Disagreement:
    """The results of both models on the case at ``position``."""
    our_case, their_case = ours.case(position), theirs.case(position)
    return Disagreement(as_text(our_case.context), our_case.wanted, our_case.got, their_case.got)
