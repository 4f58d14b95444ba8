"""The result of a model on a task, case by case; tables and reports are computed from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tercet.errors import InputError
from tercet.evaluate.significance import Columns, Metric, Sample
from tercet.records import Context

WORST_SHOWN = 20

Rankings: TypeAlias = Mapping[str, Mapping[str, float]]
"""For each query id the ids of the retrieved documents with their scores, best first."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case for a reader: the context, the expected result and the actual one."""

    context: Context
    wanted: str
    got: str


@dataclass(frozen=True)
class Result:
    """The result of a model on a task."""

    task: str
    model: str
    metrics: Mapping[str, Metric]
    """By name. Models are compared by the first one."""
    columns: Columns
    """The values of each case that the metrics need."""
    losses: NDArray[Any]
    """``[N]``: how bad the result of each case is."""
    case: Callable[[int], Case]
    """The case at a position."""
    positive_scores: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """Scores of right candidates or matches, for a histogram."""
    negative_scores: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """Scores of wrong candidates or non-matches, for a histogram."""
    rankings: Rankings = field(default_factory=dict)
    """Retrieval only."""
    half_samples: bool = False
    """Whether cases are resampled as halves, for metrics of clusterings."""
    seconds: float = 0.0
    """How long the evaluation took."""

    @property
    def main_metric(self) -> str:
        """The name of the metric by which models are compared."""
        return next(iter(self.metrics))

    @property
    def cases(self) -> int:
        """The number of cases."""
        return len(self.losses)

    def sample(self, name: str) -> Sample:
        """The metric ``name`` and its cases, for resampling."""
        return Sample(self.metrics[name], self.columns, self.columns.get("group"), self.half_samples)

    def worst(self, count: int = WORST_SHOWN) -> Sequence[Case]:
        """The cases with the highest losses, highest first."""
        return [self.case(int(position)) for position in np.argsort(-self.losses, kind="stable")[:count]]


def check_finite(values: NDArray[Any], model: str) -> None:
    """Raise if a score is NaN or infinite, which cannot be ranked."""
    wrong = np.count_nonzero(~np.isfinite(values))
    if wrong:
        raise InputError(
            f"scores must be finite numbers, and {wrong:,} of {values.size:,} scores of {model} are not"
        )


def mean_over_groups(metric: Metric) -> Metric:
    """The metric averaged over the values of the column ``group``, such as folds or topics."""

    def averaged(columns: Columns) -> float:
        groups = columns["group"]
        parts = (
            {name: values[groups == group] for name, values in columns.items()} for group in np.unique(groups)
        )
        return float(np.mean([metric(part) for part in parts]))

    return averaged
