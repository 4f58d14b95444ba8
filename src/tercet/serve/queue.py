"""The queue of a model: what waits, what is being computed, and whose turn it is."""

import time
from collections import deque
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

from tercet.errors import OverloadedError
from tercet.serve.overload import UndisturbedTimes
from tercet.serve.work import Item, Lane, Share
from tercet.settings.engine import EngineConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

FIRST_GUESS = 5_000.0
"""Tokens per second before anything was measured."""
SMOOTHING = 0.2
"""Weight of the newest batch in the measured speed."""
COUNTED_TURNS = 4
"""Turns of a waiting request that count in the wait of a new one, which overtakes larger ones."""
YIELDING_TOKENS = 128
"""Tokens that a larger request adds to a batch in an overload, when others must not wait for it."""
LARGE_SHARE = 0.8
"""Share of the queue that requests may fill which need several turns; the rest is for small ones."""
ANSWER_SHARE = 0.5
"""Share of the time for an answer that an admitted request may need: requests that come later take turns."""


class Batch(NamedTuple):
    """Items of one lane that are computed together."""

    lane: Lane
    items: list[Item]
    cost: int


class ModelQueue:
    """Requests take turns: each adds a few hundred tokens to a batch, so none waits for a large one.

    Only the event loop's thread uses a queue.
    """

    def __init__(self, config: EngineConfig, *, batch_tokens: int, answer_seconds: float = inf) -> None:
        self._config = config
        self._batch_tokens = batch_tokens
        self._answer_seconds = answer_seconds
        self._shares: deque[Share] = deque()
        self.in_flight: dict[Hashable, Item] = {}
        self.tokens = 0
        """Tokens that wait or are expected, without those in a forward pass."""
        self.running = 0
        """Tokens in forward passes."""
        self._expected = 0
        """Counted tokens of requests that are being tokenized."""
        self._speed = FIRST_GUESS
        self._recent_tokens, self._recent_seconds = FIRST_GUESS, 1.0
        """Of one batch, on average."""
        self._since = 0.0
        """When the forward pass began that is running."""
        self.undisturbed = UndisturbedTimes()

    def wait(self, estimate: int, *, busy_models: int = 1) -> float:
        """The expected seconds until a new request has had its turns.

        Args:
            busy_models: how many models have work, this one included; they take turns too.
        """
        most = max(estimate, COUNTED_TURNS * self._config.turn_tokens)
        before = sum(min(share.cost, most) for share in self._shares)
        return busy_models * (before + self._expected + self.running) / self._speed

    def seconds_ahead(self, estimate: int) -> float:
        """The expected seconds until a new request begins in an overload, where larger ones yield to it."""
        turns = ceil(estimate / self._config.turn_tokens)
        waiting = sum(
            min(share.cost, turns * YIELDING_TOKENS) if self._is_large(share) else share.cost
            for share in self._shares
        )
        running = self.running / self._pace - (time.perf_counter() - self._since)
        return (waiting + self._expected) / self._pace + max(running, 0.0)

    @property
    def _pace(self) -> float:
        """Tokens per second of the latest batches, however small they were."""
        return self._recent_tokens / self._recent_seconds

    @property
    def patience(self) -> float:
        """How many seconds a new request may wait in an overload."""
        return self.undisturbed.patience(self._batch_tokens / self._speed)

    def late(self, costs: "Callable[[Item], int]") -> "Iterator[Item]":
        """The items that wait beyond what a request may wait in an overload.

        Args:
            costs: the cost of an item that was not tokenized yet.
        """
        room = self.patience * self._pace
        for item in self.in_flight.values():
            if not item.running:
                room -= item.cost or costs(item)
                if room < 0:
                    yield item

    def _is_large(self, share: Share) -> bool:
        """Whether a request needs so many turns that others do not wait for its end."""
        return share.size > COUNTED_TURNS * self._config.turn_tokens

    def admit(self, estimate: int, *, busy_models: int = 1) -> None:
        """Reserve room for about ``estimate`` tokens, or raise."""
        config, wait = self._config, self.wait(estimate, busy_models=busy_models)
        room = config.max_queued_tokens * (LARGE_SHARE if estimate > config.turn_tokens else 1)
        crowded = self.tokens > 0 and self.tokens + estimate > room
        retry_after = max(1, ceil(min(wait, config.max_wait_seconds) / 2))
        if crowded or wait > config.max_wait_seconds:
            raise OverloadedError(
                f"the queue is full: {self.tokens:,} tokens wait, and this request would wait about "
                f"{wait:.1f} s (max_queued_tokens {config.max_queued_tokens:,}, max_wait_seconds "
                f"{config.max_wait_seconds:g}): try again later",
                retry_after=retry_after,
            )
        seconds = wait + busy_models * estimate / self._speed
        is_busy = self.tokens + self.running > 0  # an idle server tries
        if is_busy and seconds > ANSWER_SHARE * self._answer_seconds:
            raise OverloadedError(
                f"the answer would take about {seconds:.0f} s, longer if other requests come, and it may "
                f"take {self._answer_seconds:g} (request_seconds): send less, or try again later",
                retry_after=retry_after,
            )
        self.tokens += estimate
        self._expected += self._counted(estimate)

    def release(self, estimate: int) -> None:
        """Give back reserved room."""
        self.tokens -= estimate
        self._expected -= self._counted(estimate)

    def _counted(self, estimate: int) -> int:
        return min(estimate, COUNTED_TURNS * self._config.turn_tokens)

    def push(self, share: Share) -> None:
        """Let tokenized items wait."""
        self.tokens += share.cost
        self._shares.append(share)

    def drop(self, item: Item) -> None:
        """Forget an item that nobody waits for; it stays in its share, which skips it."""
        if self.in_flight.get(item.key) is item and not item.running:
            del self.in_flight[item.key]
            self.tokens -= item.cost

    @property
    def has_full_batch(self) -> bool:
        """Whether enough waits to fill half of a batch."""
        return self.tokens * 2 >= self._batch_tokens

    def take(self, *, overloaded: bool = False) -> Batch | None:
        """The next batch: requests of the first one's lane, in turn; None if nothing waits.

        Args:
            overloaded: large requests get one short turn, so that the batch is soon done.
        """
        items: list[Item] = []
        left, lane = self._batch_tokens, None
        others: list[Share] = []
        later: deque[Share] = deque()
        while left > 0 and (self._shares or later):
            share = self._shares.popleft() if self._shares else later.popleft()
            if lane not in (None, share.lane):
                others.append(share)
                continue
            yields = overloaded and self._is_large(share)
            taken = share.take(min(left, YIELDING_TOKENS if yields else self._config.turn_tokens))
            cost = sum(item.cost for item in taken)
            if items and cost > left:
                share.put_back(taken)
                others.append(share)
                break
            if taken:
                lane = share.lane
            items += taken
            left -= cost
            if share.items:
                (others if yields else later).append(share)
        self._shares.extendleft(reversed(others))
        self._shares.extend(later)
        if lane is None:
            return None
        for item in items:
            item.running = True
        cost = sum(item.cost for item in items)
        self.tokens -= cost
        if not self.running:
            self._since = time.perf_counter()
        self.running += cost
        return Batch(lane, items, cost)

    def finish(self, batch: Batch, seconds: float) -> None:
        """Note that a batch is done, and how long it took."""
        self.running -= batch.cost
        self._since = time.perf_counter()
        for item in batch.items:
            self.in_flight.pop(item.key, None)
        self._recent_tokens += SMOOTHING * (batch.cost - self._recent_tokens)
        self._recent_seconds += SMOOTHING * (seconds - self._recent_seconds)
        if seconds > 0 and batch.cost * 4 >= self._batch_tokens:  # small batches are slow
            self._speed += SMOOTHING * (batch.cost / seconds - self._speed)
