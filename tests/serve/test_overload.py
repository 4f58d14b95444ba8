"""Overload: a burst may wait, and beyond it only what begins at once is accepted."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from tests.serve.letters import LetterModel
from tests.serve.test_engine import engine_with, lengths, queue_of, until

from tercet.errors import OverloadedError
from tercet.serve.engine import Engine
from tercet.serve.overload import (
    CALM_SECONDS,
    CURRENT,
    FEW,
    RETRY_SECONDS,
    WAIT_SHARE,
    Overload,
    Request,
    UndisturbedTimes,
)
from tercet.serve.queue import COUNTED_TURNS, FIRST_GUESS, YIELDING_TOKENS
from tercet.settings.engine import EngineConfig

BURST = 4
Scenario = Callable[[Engine, LetterModel], Awaitable[None]]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def play(scenario: Scenario, **settings: int) -> LetterModel:
    model = LetterModel()

    async def run() -> None:
        config = EngineConfig(turn_tokens=8, burst_requests=BURST, **settings)
        async with engine_with(model, config) as engine:
            await asyncio.wait_for(scenario(engine, model), 10)

    asyncio.run(run())
    return model


class Steps(threading.Event):
    """A gate that lets one forward pass through with each step."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = threading.Semaphore(0)

    def step(self) -> None:
        self._steps.release()

    def set(self) -> None:
        self._steps.release(1000)

    def wait(self, timeout: float | None = None) -> bool:
        return self._steps.acquire(timeout=timeout)


async def waiting(engine: Engine, model: LetterModel, count: int) -> list[asyncio.Task[list[int]]]:
    """Requests of which the first is being computed."""
    model.gate.clear()
    tasks = [asyncio.create_task(lengths(engine, "first"))]
    await until(lambda: queue_of(engine).running > 0)
    tasks += [asyncio.create_task(lengths(engine, f"number {number:03}")) for number in range(count - 1)]
    await asyncio.sleep(0.02)
    return tasks


async def outcomes(tasks: list[asyncio.Task[list[int]]]) -> list[str]:
    found = await asyncio.gather(*tasks, return_exceptions=True)
    return [type(each).__name__ for each in found]


def test_a_burst_waits_and_is_answered() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        tasks = await waiting(engine, model, BURST)
        assert not engine.overload.is_active
        model.gate.set()
        assert await outcomes(tasks) == ["list"] * BURST

    play(scenario)


def test_more_than_a_burst_is_an_overload_and_what_waits_is_refused() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        tasks = await waiting(engine, model, BURST + 1)
        assert engine.overload.is_active
        model.gate.set()
        assert await outcomes(tasks) == ["list"] + ["OverloadedError"] * BURST
        assert (queue_of(engine).tokens, queue_of(engine).in_flight) == (0, {})

    play(scenario)


def test_a_request_that_has_a_part_of_its_results_is_not_refused() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate = gate = Steps()
        bulk = asyncio.create_task(lengths(engine, *(f"{number:016}" for number in range(3))))
        gate.step()
        await until(lambda: len(model.batches) == 1 and queue_of(engine).running > 0)
        others = [asyncio.create_task(lengths(engine, f"number {number:03}")) for number in range(BURST)]
        await until(lambda: engine.overload.is_active)
        gate.set()
        assert await bulk == [16, 16, 16]
        assert await outcomes(others) == ["OverloadedError"] * BURST

    play(scenario)


def test_an_overload_refuses_a_request_that_would_wait() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        tasks = await waiting(engine, model, 1)
        engine.overload.prolong()
        await until(lambda: len(queue_of(engine)._shares) == 0)
        queue_of(engine)._since = time.perf_counter() + 100  # the forward pass has just begun
        with pytest.raises(OverloadedError) as refused:
            await lengths(engine, "another")
        assert refused.value.retry_after == RETRY_SECONDS
        assert engine.is_full()
        model.gate.set()
        assert await outcomes(tasks) == ["list"]
        assert not engine.is_full()

    play(scenario)


def test_an_overload_accepts_what_an_idle_engine_can_begin() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        engine.overload.prolong()
        assert not engine.is_full()
        assert await lengths(engine, "another") == [7]

    play(scenario)


def test_a_request_that_was_admitted_may_need_the_engine_again() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        request = Request()
        CURRENT.set(request)
        await lengths(engine, "encode")
        CURRENT.set(None)
        tasks = await waiting(engine, model, 1)
        engine.overload.prolong()
        queue_of(engine)._since = time.perf_counter() + 100
        CURRENT.set(request)
        tasks.append(asyncio.create_task(lengths(engine, "rerank")))
        CURRENT.set(None)
        with pytest.raises(OverloadedError):
            await lengths(engine, "another")
        model.gate.set()
        assert await outcomes(tasks) == ["list", "list"]

    play(scenario)


def test_a_large_request_yields_in_an_overload() -> None:
    large = COUNTED_TURNS * 8 + 1
    costs: list[int] = []

    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.batch_tokens = engine._models["letters"].queue._batch_tokens = 4 * YIELDING_TOKENS
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        bulk = asyncio.create_task(lengths(engine, *(f"{number:064}" for number in range(large))))
        await until(lambda: len(queue_of(engine)._shares) == 1)
        assert queue_of(engine).seconds_ahead(1) < 3 * YIELDING_TOKENS / FIRST_GUESS
        engine.overload.prolong()
        model.gate.set()
        await asyncio.gather(first, bulk)
        costs.extend(sum(map(len, texts)) for _, texts in model.batches)

    play(scenario)
    assert max(costs[1:4]) <= YIELDING_TOKENS


def test_requests_of_nobody_are_not_tokenized_by_a_thread_that_is_late() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.tokenizing.clear()
        tasks = [asyncio.create_task(lengths(engine, text)) for text in ("aa", "bb", "dropped")]
        await asyncio.sleep(0.02)  # two threads tokenize, and the third request waits for one
        tasks[2].cancel()
        await asyncio.sleep(0.02)
        model.tokenizing.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert "dropped" not in play(scenario, tokenizer_threads=2).tokenized


def test_an_overload_ends_when_nothing_was_refused_for_a_second() -> None:
    clock = Clock()
    overload = Overload(1, clock)
    overload.prolong()
    clock.now = 0.9 * CALM_SECONDS
    overload.prolong()
    clock.now = 1.8 * CALM_SECONDS
    assert overload.is_active
    clock.now = 1.9 * CALM_SECONDS
    assert not overload.is_active


def test_refused_clients_come_back_after_the_overload() -> None:
    assert RETRY_SECONDS > CALM_SECONDS


def test_a_request_counts_once_however_many_results_it_waits_for() -> None:
    overload, request, other = Overload(1), Request(), Request()
    with overload.waiting(request), overload.waiting(request):
        assert not overload.begins
        with overload.waiting(other):
            assert overload.begins
        assert not overload.begins
    assert overload._waiting == 0


def test_the_patience_is_a_share_of_what_nine_in_ten_requests_took() -> None:
    times = UndisturbedTimes()
    assert times.patience(0.1) == pytest.approx(WAIT_SHARE * 0.1)
    for number in range(FEW):
        times.add(0.001 * number)
    assert times.patience(0.1) == pytest.approx(WAIT_SHARE * 0.017)
    assert times.patience(0.005) == pytest.approx(WAIT_SHARE * 0.005)
