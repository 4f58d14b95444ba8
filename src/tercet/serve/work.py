"""Texts on their way through the engine: items, the jobs that wait for them, and shares of a batch."""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from asyncio import Future

Lane: TypeAlias = Literal["context", "candidate", "pair"]
"""What is computed from an item. A batch has items of one lane."""


class Tokenized(NamedTuple):
    """A tokenized text or pair, in the model's own form.

    ``cost`` is its share of a batch, at least its tokens. ``truncated`` counts the tokens that were dropped
    from each of its texts.
    """

    payload: Any
    tokens: int
    cost: int
    truncated: tuple[int, ...] = (0,)


class Result(NamedTuple):
    """What a model computed from an item, the tokens that it read, and those that were truncated."""

    value: Any
    tokens: int
    truncated: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits for the results of its items."""

    done: "Future[list[Result]]"
    results: list[Any]
    missing: int

    @property
    def has_begun(self) -> bool:
        """Whether a part of the results is known."""
        return self.missing < len(self.results)

    def receive(self, position: int, result: Result) -> None:
        """Take one result; the last one ends the job."""
        self.results[position] = result
        self.missing -= 1
        if not self.missing and not self.done.done():
            self.done.set_result(self.results)

    def fail(self, error: BaseException) -> None:
        """End the job with an error."""
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(slots=True, eq=False)
class Item:
    """A text or pair that is computed once for all jobs that wait for it."""

    key: Hashable
    text: Any
    waiters: list[tuple[Job, int]] = field(default_factory=list)
    tokens: Tokenized | None = None
    since: float = 0.0
    """When it was tokenized."""
    running: bool = False
    """Whether it is part of a batch."""

    @property
    def wanted(self) -> bool:
        """Whether a job still waits for it."""
        return bool(self.waiters)

    @property
    def cost(self) -> int:
        """The number of its tokens, as far as known."""
        return 0 if self.tokens is None else self.tokens.cost

    def abandon(self, job: Job) -> None:
        """A job no longer waits."""
        self.waiters = [waiter for waiter in self.waiters if waiter[0] is not job]

    def deliver(self, result: Result) -> None:
        """Hand the result to every job that waits."""
        for job, position in self.waiters:
            job.receive(position, result)
        self.waiters = []

    def fail(self, error: BaseException) -> None:
        """Hand an error to every job that waits."""
        for job, _ in self.waiters:
            job.fail(error)
        self.waiters = []


class Share:
    """The waiting items of one request in one lane."""

    def __init__(self, lane: Lane, items: Sequence[Item]) -> None:
        self.lane: Lane = lane
        self.items = deque(items)
        self.cost = sum(item.cost for item in items)
        """Tokens of the items; those that nobody wants any more count until their turn."""
        self.size = self.cost
        """Tokens of the items at first."""

    def put_back(self, items: Sequence[Item]) -> None:
        """Undo ``take``."""
        self.items.extendleft(reversed(items))
        self.cost += sum(item.cost for item in items)

    def take(self, budget: int) -> list[Item]:
        """Items of at most ``budget`` tokens, but at least one; unwanted ones are dropped."""
        taken: list[Item] = []
        left = budget
        while self.items:
            item = self.items[0]
            if item.wanted:
                if taken and item.cost > left:
                    break
                taken.append(item)
                left -= item.cost
            self.items.popleft()
            self.cost -= item.cost
            if left <= 0:
                break
        return taken
