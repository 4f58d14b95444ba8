"""Confidence intervals and paired tests, by resampling the cases of a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tercet.evaluate.sign_flips import sign_flip_p

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""Values of each case, ``[N, ...]`` per column."""
Metric: TypeAlias = Callable[[Columns], float]

RESAMPLES = 1000
ALPHA = 0.05
"""Significance level; intervals cover 1 - ALPHA."""
MIN_CASES = 20
"""Fewest cases for a significant difference of a metric other than a mean."""


class Estimate(NamedTuple):
    """The value of a metric with its 95% confidence interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """How much better a model is than another on the same cases, with its 95% interval and p-value."""

    value: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` if the difference is significant."""
        if self.p >= ALPHA:
            return "no difference shown"
        return "better" if self.value > 0 else "worse"


class SeedSpread(NamedTuple):
    """Mean and standard deviation of a metric over models trained with several seeds."""

    mean: float
    deviation: float
    seeds: int


@dataclass(frozen=True)
class MeanOf:
    """The metric that is the mean of a column."""

    column: str

    def __call__(self, columns: Columns) -> float:
        return float(np.mean(columns[self.column]))


@dataclass(frozen=True)
class Sample:
    """A metric, the cases it is computed on, and how they are resampled."""

    metric: Metric
    columns: Columns
    strata: NDArray[Any] | None = None
    """``[N]``: the stratum of each case. Each stratum is resampled on its own and keeps its size."""
    half_samples: bool = False
    """Resample halves without replacement instead of bootstrapping. Metrics of clusterings need this: with
    replacement, a case would share its cluster with its own copies. The variance of a half-sample equals that
    of the bootstrap."""

    @property
    def value(self) -> float:
        """The metric on all cases."""
        return self.metric(self.columns)

    @property
    def size(self) -> int:
        """The number of cases."""
        return len(next(iter(self.columns.values())))

    def value_at(self, positions: NDArray[np.int64]) -> float:
        """The metric on a resample."""
        return self.metric({name: values[positions] for name, values in self.columns.items()})

    def resamples(self, count: int, seed: int) -> Iterator[NDArray[np.int64]]:
        """Positions of resampled cases, the same for all models, so that two models can be compared."""
        rng = np.random.default_rng(seed)
        if self.half_samples:
            return (rng.permutation(self.size)[: self.size // 2] for _ in range(count))
        if self.strata is None:
            return (rng.integers(self.size, size=self.size) for _ in range(count))
        strata = [np.flatnonzero(self.strata == stratum) for stratum in np.unique(self.strata)]
        return (np.concatenate([rng.choice(part, len(part)) for part in strata]) for _ in range(count))


def estimate(sample: Sample, *, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """The metric with its percentile bootstrap interval."""
    values = np.array([sample.value_at(positions) for positions in sample.resamples(resamples, seed)])
    return Estimate(sample.value, *_interval(_centred(values, sample.value, sample)))


def difference(ours: Sample, theirs: Sample, *, resamples: int = RESAMPLES, seed: int = 0) -> Difference:
    """The difference of two models on the same cases, with a paired bootstrap interval and two-sided p-value.

    For means, p comes from a permutation test, which is exact for any number of cases and does not depend on
    the seed. For other metrics it comes from the bootstrap, and fewer than ``MIN_CASES`` cases are never
    significant.
    """
    gaps = np.array(
        [
            ours.value_at(positions) - theirs.value_at(positions)
            for positions in ours.resamples(resamples, seed)
        ]
    )
    value = ours.value - theirs.value
    gaps = _centred(gaps, value, ours)
    if isinstance(ours.metric, MeanOf) and isinstance(theirs.metric, MeanOf):
        p = permutation_test(ours.columns[ours.metric.column], theirs.columns[theirs.metric.column])
    else:
        p = _bootstrap_p(gaps) if ours.size >= MIN_CASES else 1.0
    return Difference(value, *_interval(gaps), p)


def permutation_test(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """The two-sided p-value of a difference of means: the models are swapped in every way, case by case."""
    return sign_flip_p(np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64))


def seed_spread(values: Sequence[float]) -> SeedSpread:
    """The mean and the sample standard deviation over seeds."""
    array = np.asarray(values, dtype=np.float64)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return SeedSpread(float(array.mean()), deviation, len(array))


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, [ALPHA / 2, 1 - ALPHA / 2])
    return float(low), float(high)


def _centred(values: NDArray[np.float64], value: float, sample: Sample) -> NDArray[np.float64]:
    """Half-samples shifted to the value on all cases: some metrics grow with the number of cases."""
    return values - values.mean() + value if sample.half_samples else values


def _bootstrap_p(gaps: NDArray[np.float64]) -> float:
    beyond = min(np.count_nonzero(gaps <= 0), np.count_nonzero(gaps >= 0))
    return float(min(1.0, 2 * (beyond + 1) / (len(gaps) + 1)))
