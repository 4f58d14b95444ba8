"""The queue of a model and the cache, without an event loop."""

from math import inf

import pytest

from tercet.errors import OverloadedError
from tercet.serve.cache import OVERHEAD, ResultCache
from tercet.serve.queue import FIRST_GUESS, Batch, ModelQueue
from tercet.serve.work import Item, Job, Lane, Result, Share, Tokenized
from tercet.settings.engine import EngineConfig


def waiting(*costs: int, lane: Lane = "candidate") -> Share:
    """A share of items that somebody waits for."""
    job = Job(None, [], len(costs))  # type: ignore[arg-type]
    return Share(
        lane,
        [
            Item(key=object(), text="", waiters=[(job, 0)], tokens=Tokenized(None, cost, cost))
            for cost in costs
        ],
    )


def queue(batch_tokens: int = 16, *, answer_seconds: float = inf, **settings: float) -> ModelQueue:
    config = EngineConfig(turn_tokens=8, **settings)
    return ModelQueue(config, batch_tokens=batch_tokens, answer_seconds=answer_seconds)


def costs(batch: Batch | None) -> list[int]:
    assert batch is not None
    return [item.cost for item in batch.items]


def test_the_wait_is_what_lies_ahead_divided_by_the_speed() -> None:
    line = queue()
    line.push(waiting(5, 5))
    line.push(waiting(10))
    assert line.wait(1) == pytest.approx(20 / FIRST_GUESS)
    assert line.wait(1, busy_models=3) == pytest.approx(60 / FIRST_GUESS)


def test_a_large_request_counts_with_four_turns() -> None:
    line = queue()
    line.push(waiting(*[8] * 100))
    assert line.wait(1) == pytest.approx(4 * 8 / FIRST_GUESS)
    assert line.wait(500) == pytest.approx(500 / FIRST_GUESS)


def test_requests_that_are_being_tokenized_count() -> None:
    line = queue()
    line.admit(20)
    assert line.wait(1) == pytest.approx(20 / FIRST_GUESS)
    line.release(20)
    assert line.wait(1) == 0


def test_what_was_computed_no_longer_counts() -> None:
    line = queue()
    line.push(waiting(8, 8, 8))
    batch = line.take()
    assert line.wait(1) == pytest.approx(24 / FIRST_GUESS)
    assert batch is not None
    line.finish(batch, seconds=0)
    assert line.wait(1) == pytest.approx(8 / FIRST_GUESS)


def test_full_batches_measure_the_speed() -> None:
    line = queue()
    line.push(waiting(8, 8))
    batch = line.take()
    assert batch is not None
    line.finish(batch, seconds=16 / (3 * FIRST_GUESS))  # three times as fast as the guess
    line.push(waiting(10))
    assert line.wait(1) == pytest.approx(10 / (FIRST_GUESS + 0.2 * 2 * FIRST_GUESS))


def test_small_batches_do_not_measure_the_speed() -> None:
    line = queue()
    line.push(waiting(3))
    batch = line.take()
    assert batch is not None
    line.finish(batch, seconds=10)
    line.push(waiting(10))
    assert line.wait(1) == pytest.approx(10 / FIRST_GUESS)


def test_other_busy_models_make_a_request_wait_too_long() -> None:
    line = queue(max_wait_seconds=2 * 10 / FIRST_GUESS)
    line.push(waiting(10))
    line.admit(1)
    with pytest.raises(OverloadedError):
        line.admit(1, busy_models=3)


def test_a_request_that_would_be_answered_too_late_is_refused() -> None:
    line = queue(answer_seconds=40 / FIRST_GUESS)
    line.push(waiting(8))
    line.admit(12)  # half of the time is for requests that come later
    line.release(12)
    with pytest.raises(OverloadedError, match="request_seconds"):
        line.admit(13)
    with pytest.raises(OverloadedError, match="request_seconds"):
        line.admit(12, busy_models=2)


def test_a_single_token_that_waits_makes_a_queue_busy() -> None:
    line = queue(answer_seconds=40 / FIRST_GUESS)
    line.push(waiting(1))
    with pytest.raises(OverloadedError, match="request_seconds"):
        line.admit(20)


def test_a_queue_with_a_single_token_has_no_room_for_more_than_it_holds() -> None:
    line = queue(max_queued_tokens=30)
    line.push(waiting(1))
    with pytest.raises(OverloadedError, match="the queue is full: 1 tokens wait"):
        line.admit(40)


def test_an_idle_queue_tries_a_request_however_long_it_seems() -> None:
    line = queue(answer_seconds=40 / FIRST_GUESS)
    line.admit(1000)
    line.release(1000)
    line.push(waiting(8))
    batch = line.take()
    assert batch is not None
    with pytest.raises(OverloadedError):
        line.admit(1000)
    line.finish(batch, seconds=0)
    line.admit(1000)


def test_the_time_to_try_again_is_half_of_the_wait() -> None:
    line = queue(max_wait_seconds=10)
    line.push(waiting(int(7 * FIRST_GUESS)))
    with pytest.raises(OverloadedError) as refused:
        line.admit(int(7 * FIRST_GUESS), busy_models=2)
    assert refused.value.retry_after == 5  # the wait is 14 s, and nobody waits longer than 10
    line = queue(max_wait_seconds=1 / FIRST_GUESS)
    line.push(waiting(2))
    with pytest.raises(OverloadedError) as refused:
        line.admit(1)
    assert refused.value.retry_after == 1


def test_items_that_are_put_back_keep_their_order() -> None:
    share = waiting(1, 2, 3)
    taken = share.take(4)
    assert ([item.cost for item in taken], share.cost) == ([1, 2], 3)
    share.put_back(taken)
    assert ([item.cost for item in share.items], share.cost) == ([1, 2, 3], 6)


def test_shares_of_another_lane_keep_their_place() -> None:
    line = queue()
    for cost, lane in ((8, "candidate"), (1, "context"), (2, "pair"), (8, "candidate"), (8, "candidate")):
        line.push(waiting(cost, lane=lane))
    assert [(batch.lane, costs(batch)) for batch in iter(line.take, None)] == [
        ("candidate", [8, 8]),
        ("context", [1]),
        ("pair", [2]),
        ("candidate", [8]),
    ]


def test_another_lane_is_next_after_a_batch() -> None:
    line = queue()
    line.push(waiting(8, 8, 8))
    line.push(waiting(5, lane="context"))
    line.push(waiting(7))
    assert costs(line.take()) == [8, 7]
    second = line.take()
    assert (second and second.lane, costs(second)) == ("context", [5])
    assert costs(line.take()) == [8, 8]
    assert line.take() is None


def test_half_a_batch_is_enough_to_be_handed_over_early() -> None:
    line = queue()
    line.push(waiting(7))
    assert not line.has_full_batch
    line.push(waiting(1))
    assert line.has_full_batch


def test_the_cache_forgets_what_was_used_least_recently() -> None:
    cache, result = ResultCache(3 * (OVERHEAD + 8)), Result(1.0, 1, (0,))
    for key in "abc":
        cache.put(key, result, characters=0)
    cache.get("a")
    cache.put("d", result, characters=0)
    assert [key for key in "abcd" if cache.get(key)] == ["a", "c", "d"]


def test_the_cache_takes_nothing_that_is_larger_than_itself() -> None:
    cache = ResultCache(1000)
    cache.put("long", Result(1.0, 1, (0,)), characters=1000)
    assert (len(cache), cache.bytes) == (0, 0)
