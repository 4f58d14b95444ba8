"""Times that can be compared: taken in turn, with their spread."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter
from typing import NamedTuple


class Action(NamedTuple):
    """Something to be timed; ``times`` is what its time is multiplied by where only a part of it is done."""

    run: Callable[[], object]
    times: float = 1.0


class Times(NamedTuple):
    """Seconds of each round; ``estimated`` if they were worked out from a part."""

    seconds: tuple[float, ...]
    estimated: bool = False

    @property
    def median(self) -> float:
        """Of the rounds."""
        return median(self.seconds)


class Ratio(NamedTuple):
    """How many times quicker, round by round: the median, the least and the most."""

    median: float
    low: float
    high: float

    @property
    def tie(self) -> bool:
        """Whether the spread crosses 1."""
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        return f"{self.median:.2f}x ({self.low:.2f}-{self.high:.2f}){', a tie' if self.tie else ''}"


def in_turn(actions: Mapping[str, Action], *, rounds: int) -> dict[str, Times]:
    """The times of each action; in every round each has its turn, after one that is not counted."""
    for action in actions.values():
        action.run()
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            start = perf_counter()
            action.run()
            seconds[name].append((perf_counter() - start) * action.times)
    return {name: Times(tuple(taken), actions[name].times > 1) for name, taken in seconds.items()}


def ratio(theirs: Times, ours: Times) -> Ratio:
    """How many times quicker ours is, each round against the same round."""
    each = sorted(one / other for one, other in zip(theirs.seconds, ours.seconds, strict=True))
    return Ratio(median(each), each[0], each[-1])
