"""Comparable times: actions are timed in interleaved rounds, so that a slow moment hits all of them."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple


class Action(NamedTuple):
    """Something to time. If only a part of the work is done, its time is multiplied by ``times``.

    ``limit`` is the least time of all the work in seconds, if it is known.
    """

    run: Callable[[], object]
    times: float = 1.0
    limit: float | None = None


class Times(NamedTuple):
    """Seconds of each round.

    ``estimated`` says that they were extrapolated from a part of the work. ``result`` is what the action
    returned in the last round.
    """

    seconds: tuple[float, ...]
    estimated: bool = False
    result: Any = None

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return median(self.seconds)


class Ratio(NamedTuple):
    """How many times faster: the median, the smallest and the largest ratio of the rounds."""

    median: float
    low: float
    high: float

    @property
    def tie(self) -> bool:
        """Whether the rounds disagree about which is faster."""
        return self.low <= 1 <= self.high

    @property
    def spread(self) -> str:
        """The three numbers, such as ``1.50x (1.40-1.60)``."""
        return f"{self.median:.2f}x ({self.low:.2f}-{self.high:.2f})"

    def __str__(self) -> str:
        return f"{self.spread}{', a tie' if self.tie else ''}"


def in_turn(actions: Mapping[str, Action], *, rounds: int) -> dict[str, Times]:
    """The times of each action. Every round runs all actions, after one round that is not counted."""
    for action in actions.values():
        action.run()
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    results: dict[str, object] = {}
    for _ in range(rounds):
        for name, action in actions.items():
            start = perf_counter()
            results[name] = action.run()
            seconds[name].append((perf_counter() - start) * action.times)
    return {name: Times(tuple(seconds[name]), actions[name].times > 1, results.get(name)) for name in actions}


def ratio(theirs: Times, ours: Times) -> Ratio:
    """How many times faster ours is, each round compared with the same round."""
    ratios = sorted(their / our for their, our in zip(theirs.seconds, ours.seconds, strict=True))
    return Ratio(median(ratios), ratios[0], ratios[-1])
