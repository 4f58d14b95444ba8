"""How sure a figure is, and whether one model is better than another: by drawing the cases again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""What is known of each case, ``[N, ...]`` each."""
Measure: TypeAlias = Callable[[Columns], float]

DRAWS = 1000
LEVEL = 0.05


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


class Sample(NamedTuple):
    """A measure, and the cases it is taken of."""

    measure: Measure
    columns: Columns

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


def figure(sample: Sample, *, draws: int = DRAWS, seed: int = 0) -> Figure:
    """The measure with its interval (percentile bootstrap over the cases)."""
    drawn = [sample.at(places) for places in _draws(sample.size, draws, seed)]
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2])
    return Figure(sample.value, float(low), float(high))


def difference(ours: Sample, theirs: Sample, *, draws: int = DRAWS, seed: int = 0) -> Difference:
    """Paired bootstrap: both models on the same drawn cases; ``p`` is two-sided."""
    gaps = np.array([ours.at(places) - theirs.at(places) for places in _draws(ours.size, draws, seed)])
    low, high = np.quantile(gaps, [LEVEL / 2, 1 - LEVEL / 2])
    beyond = min(np.count_nonzero(gaps <= 0), np.count_nonzero(gaps >= 0))
    p = float(min(1.0, 2 * (beyond + 1) / (draws + 1)))
    return Difference(ours.value - theirs.value, float(low), float(high), p)


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
    swapped = (abs(chance.choice((-1.0, 1.0), size=len(gaps)) @ gaps) >= seen for _ in range(draws))
    return (1 + sum(map(int, swapped))) / (draws + 1)


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample deviation over seeds."""
    found = np.asarray(values, dtype=np.float64)
    return Spread(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else 0.0, len(found))


def _draws(count: int, draws: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """The same for the same count and seed, so that two models meet the same cases."""
    chance = np.random.default_rng(seed)
    return (chance.integers(count, size=count) for _ in range(draws))
