"""What a model did on a task, case by case; everything else is worked out from that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import InputError
from tercet.evaluate.significance import Columns, Measure, Sample
from tercet.records import Context

WORST = 20


@dataclass(frozen=True, slots=True)
class Case:
    """One case as a reader wants to see it."""

    context: Context
    wanted: str
    got: str


@dataclass(frozen=True)
class Result:
    """What a model did on a task."""

    task: str
    model: str
    measures: Mapping[str, Measure]
    """By name; the first is the one that models are compared by."""
    columns: Columns
    """What the measures need of each case."""
    losses: NDArray[Any]
    """``[N]``: how badly each case went."""
    case: Callable[[int], Case]
    right: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """Scores of right candidates or matches, for a picture."""
    wrong: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    runs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of retrieval: for each query the texts that were found, with their scores."""
    halves: bool = False
    """Whether cases are drawn again as halves, for measures of partitions."""
    seconds: float = 0.0

    @property
    def main(self) -> str:
        """The measure that models are compared by."""
        return next(iter(self.measures))

    @property
    def cases(self) -> int:
        """How many there are."""
        return len(self.losses)

    def sample(self, name: str) -> Sample:
        """A measure, to be drawn again."""
        return Sample(self.measures[name], self.columns, self.columns.get("group"), self.halves)

    def worst(self, count: int = WORST) -> Sequence[Case]:
        """The cases that went worst, worst first."""
        return [self.case(int(place)) for place in np.argsort(-self.losses, kind="stable")[:count]]


def check_scores(scores: NDArray[Any], model: str) -> None:
    """Raise if a score is no number: it would have to be ranked somewhere, and nowhere is right."""
    wrong = np.count_nonzero(~np.isfinite(scores))
    if wrong:
        raise InputError(f"{wrong:,} of {scores.size:,} scores of {model} are no finite numbers")


def by_group(measure: Measure) -> Measure:
    """The mean of a measure over the groups that the cases are in, as over folds or topics."""

    def averaged(columns: Columns) -> float:
        groups = columns["group"]
        return float(
            np.mean(
                [
                    measure({name: values[groups == group] for name, values in columns.items()})
                    for group in np.unique(groups)
                ]
            )
        )

    return averaged
