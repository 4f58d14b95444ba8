"""How sure a figure is, and whether one model is better than another: by drawing the cases again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""What is known of each case, ``[N, ...]`` each."""
Measure: TypeAlias = Callable[[Columns], float]

DRAWS = 1000
LEVEL = 0.05
AT_ONCE = 256
FEWEST = 20
"""Cases that a difference other than of means needs."""


class Figure(NamedTuple):
    """A measure, and the interval that holds 95% of what other cases of the same kind would give."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """By how much one model is above another on the same cases, with its 95% interval; ``p`` is of chance."""

    value: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` only where chance is unlikely."""
        if self.p >= LEVEL:
            return "no difference shown"
        return "better" if self.value > 0 else "worse"


class Spread(NamedTuple):
    """Several trainings of one recipe: the mean, and the deviation of a single one."""

    mean: float
    deviation: float
    seeds: int


@dataclass(frozen=True)
class MeanOf:
    """The mean of a column."""

    column: str

    def __call__(self, columns: Columns) -> float:
        return float(np.mean(columns[self.column]))


@dataclass(frozen=True)
class Sample:
    """A measure, the cases it is taken of, and how they are drawn again."""

    measure: Measure
    columns: Columns
    strata: NDArray[Any] | None = None
    """``[N]``: parts that are drawn from each by itself, so that none is lost."""
    halves: bool = False
    """Draw halves without putting back: for measures of partitions, where a case drawn twice would always be
    together with itself. A half strays as far from the whole as the whole from the truth."""

    @property
    def value(self) -> float:
        """The measure of all cases."""
        return self.measure(self.columns)

    @property
    def size(self) -> int:
        """How many cases there are."""
        return len(next(iter(self.columns.values())))

    def at(self, places: NDArray[np.int64]) -> float:
        """The measure of some cases."""
        return self.measure({name: values[places] for name, values in self.columns.items()})

    def draws(self, count: int, seed: int) -> Iterator[NDArray[np.int64]]:
        """Places of cases; the same for the same cases and seed, so that two models meet the same."""
        chance = np.random.default_rng(seed)
        if self.halves:
            return (chance.permutation(self.size)[: self.size // 2] for _ in range(count))
        if self.strata is None:
            return (chance.integers(self.size, size=self.size) for _ in range(count))
        parts = [np.flatnonzero(self.strata == part) for part in np.unique(self.strata)]
        return (np.concatenate([chance.choice(part, len(part)) for part in parts]) for _ in range(count))


def figure(sample: Sample, *, draws: int = DRAWS, seed: int = 0) -> Figure:
    """The measure with its interval (percentile bootstrap over the cases)."""
    drawn = np.array([sample.at(places) for places in sample.draws(draws, seed)])
    return Figure(sample.value, *_interval(_centred(drawn, sample.value, sample)))


def difference(ours: Sample, theirs: Sample, *, draws: int = DRAWS, seed: int = 0) -> Difference:
    """Both models on the same drawn cases, for the interval; ``p`` is two-sided.

    Where the measure is a mean, p is that of a randomisation test, which is right for any number of cases;
    for other measures it comes from the draws, and a few cases show nothing.
    """
    value = ours.value - theirs.value
    gaps = np.array([ours.at(places) - theirs.at(places) for places in ours.draws(draws, seed)])
    gaps = _centred(gaps, value, ours)
    if isinstance(ours.measure, MeanOf) and isinstance(theirs.measure, MeanOf):
        p = randomisation(ours.columns[ours.measure.column], theirs.columns[theirs.measure.column], seed=seed)
    elif ours.size < FEWEST:
        p = 1.0
    else:
        beyond = min(np.count_nonzero(gaps <= 0), np.count_nonzero(gaps >= 0))
        p = float(min(1.0, 2 * (beyond + 1) / (draws + 1)))
    return Difference(value, *_interval(gaps), p)


def randomisation(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], *, draws: int = 10_000, seed: int = 0
) -> float:
    """p that the mean of paired values differs so much by chance: the two models swapped case by case."""
    gaps = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    gaps = gaps[gaps != 0]  # a swap of equals changes nothing
    if not len(gaps):
        return 1.0
    chance = np.random.default_rng(seed)
    seen = abs(gaps.sum()) - 1e-9
    as_far = 0
    for start in range(0, draws, AT_ONCE):
        signs = 2 * chance.integers(2, size=(min(AT_ONCE, draws - start), len(gaps)), dtype=np.int8) - 1
        as_far += int(np.count_nonzero(np.abs(signs @ gaps) >= seen))
    return (1 + as_far) / (draws + 1)


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample deviation over seeds."""
    found = np.asarray(values, dtype=np.float64)
    return Spread(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else 0.0, len(found))


def _interval(drawn: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def _centred(drawn: NDArray[np.float64], value: float, sample: Sample) -> NDArray[np.float64]:
    """What was drawn, moved to the value: halves are smaller, and some measures grow with the cases."""
    return drawn - drawn.mean() + value if sample.halves else drawn
