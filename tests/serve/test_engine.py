"""The engine, with a model whose results are known and whose time is under control."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.serve.letters import LetterModel

from tercet.errors import InputError, ModelError, OverloadedError
from tercet.serve.engine import Engine, TooManyTokensError, UnknownModelError, _parts
from tercet.serve.models import TokenArray
from tercet.serve.queue import FIRST_GUESS
from tercet.serve.work import Item
from tercet.settings.engine import EngineConfig

Scenario = Callable[[Engine, LetterModel], Awaitable[None]]


@asynccontextmanager
async def engine_with(model: LetterModel, config: EngineConfig | None = None) -> AsyncIterator[Engine]:
    engine = Engine(config or EngineConfig(turn_tokens=8))
    await engine.load("letters", lambda: model)
    try:
        yield engine
    finally:
        model.gate.set()
        await engine.close()


def play(scenario: Scenario, config: EngineConfig | None = None) -> LetterModel:
    """Run a scenario with a new engine; returns its model."""
    model = LetterModel()

    async def run() -> None:
        async with engine_with(model, config) as engine:
            await asyncio.wait_for(scenario(engine, model), 10)

    asyncio.run(run())
    return model


async def lengths(engine: Engine, *texts: str) -> list[int]:
    return [result.value for result in await engine.run("letters", "candidate", texts)]


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until something holds."""
    while not condition():
        await asyncio.sleep(0.001)


def queue_of(engine: Engine):
    return engine._models["letters"].queue


def test_results_come_in_the_order_of_the_texts() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert await lengths(engine, "aaa", "a", "aaaaaaaaaaaaaaaaaaaa", "aa") == [3, 1, 20, 2]

    play(scenario)


def test_an_answer_counts_read_and_truncated_tokens() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        (short, long) = await engine.run("letters", "candidate", ["aaa", "a" * 10])
        assert (short.tokens, short.truncated) == (3, (0,))
        assert (long.tokens, long.truncated) == (10, (2,))

    play(scenario)


def test_no_text_is_an_empty_answer() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert await lengths(engine) == []

    assert play(scenario).batches == []


def test_requests_that_come_together_share_a_batch() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        others = [asyncio.create_task(lengths(engine, text)) for text in ("aa", "bbb", "cccc")]
        await until(lambda: queue_of(engine).tokens == 9)
        model.gate.set()
        await asyncio.gather(first, *others)

    model = play(scenario)
    assert [sorted(texts) for _, texts in model.batches] == [["first"], ["aa", "bbb", "cccc"]]


def test_a_batch_has_at_most_the_tokens_of_the_model() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        await lengths(engine, *("abcde" + letter for letter in "abcdefgh"))

    model = play(scenario)
    assert max(sum(map(len, texts)) for _, texts in model.batches) <= model.batch_tokens


def test_the_longest_texts_of_a_request_come_first() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert await lengths(engine, "a", "bbbb", "cc") == [1, 4, 2]

    assert play(scenario).batches == [("candidate", ["bbbb", "cc", "a"])]


def test_only_half_full_batches_are_handed_over_ahead() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        queue = queue_of(engine)
        model.gate.clear()
        tasks = [asyncio.create_task(lengths(engine, "first"))]
        await until(lambda: queue.running == 5)
        tasks.append(asyncio.create_task(lengths(engine, "aaa")))
        await until(lambda: "aaa" in model.tokenized and not engine._tokenizing)
        await asyncio.sleep(0.01)
        assert (queue.running, queue.tokens) == (5, 3)
        tasks.append(asyncio.create_task(lengths(engine, "bbbbb")))
        await until(lambda: queue.running == 5 + 8)
        model.gate.set()
        await asyncio.gather(*tasks)

    play(scenario, EngineConfig(turn_tokens=8, batches_ahead=2))


def test_a_text_longer_than_a_batch_is_computed_alone() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert await lengths(engine, "a" * 50, "b") == [50, 1]

    assert ("candidate", ["a" * 50]) in play(scenario).batches


def test_texts_of_two_lanes_never_share_a_batch() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        tasks = [
            asyncio.create_task(engine.run("letters", lane, [text]))
            for lane, text in (("candidate", "a"), ("context", "a"), ("candidate", "b"), ("context", "b"))
        ]
        await until(lambda: queue_of(engine).tokens + queue_of(engine).running == 4)
        model.gate.set()
        await asyncio.gather(*tasks)

    assert sorted(lane for lane, texts in play(scenario).batches for _ in texts) == [
        "candidate",
        "candidate",
        "context",
        "context",
    ]


def test_a_small_request_does_not_wait_for_a_large_one() -> None:
    finished: list[str] = []

    async def scenario(engine: Engine, model: LetterModel) -> None:
        async def request(name: str, *texts: str) -> None:
            await lengths(engine, *texts)
            finished.append(name)

        model.gate.clear()
        large = asyncio.create_task(request("large", *(f"text {number:04}" for number in range(200))))
        await until(lambda: queue_of(engine).running > 0)
        small = asyncio.create_task(request("small", "hello"))
        await until(lambda: "hello" in model.tokenized)
        model.gate.set()
        await asyncio.gather(large, small)

    model = play(scenario)
    assert finished == ["small", "large"]
    before = next(number for number, (_, texts) in enumerate(model.batches) if "hello" in texts)
    assert before <= 2


def test_requests_share_a_batch_in_turns() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        large = asyncio.create_task(lengths(engine, *(f"{number:04}" for number in range(20))))
        await until(lambda: queue_of(engine).tokens == 80)
        small = asyncio.create_task(lengths(engine, "small"))
        await until(lambda: queue_of(engine).tokens == 85)
        model.gate.set()
        await asyncio.gather(first, large, small)

    texts = play(scenario).batches[1][1]
    assert [len(text) for text in texts] == [4, 4, 5]  # 8 tokens of the first request, then the next one


def test_a_large_request_is_not_starved_by_small_ones() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        large = asyncio.create_task(lengths(engine, *(f"{number:08}" for number in range(20))))
        stop = asyncio.Event()

        async def keep_asking(letter: str) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                await lengths(engine, f"{letter}{number}")

        askers = [asyncio.create_task(keep_asking(letter)) for letter in "abcdef"]
        await asyncio.wait_for(large, 5)
        stop.set()
        await asyncio.gather(*askers)

    play(scenario)


def test_equal_texts_in_flight_are_computed_once() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        tasks = [asyncio.create_task(lengths(engine, "same", "same")) for _ in range(5)]
        await until(lambda: queue_of(engine).running > 0)
        tasks.append(asyncio.create_task(lengths(engine, "same")))
        await asyncio.sleep(0.01)
        model.gate.set()
        assert await asyncio.gather(*tasks) == [[4, 4]] * 5 + [[4]]

    assert play(scenario).batches == [("candidate", ["same"])]


def test_without_a_cache_a_text_is_computed_again() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        await lengths(engine, "again")
        await lengths(engine, "again")

    assert len(play(scenario).batches) == 2


def test_a_cache_answers_known_texts() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        await lengths(engine, "again")
        assert await lengths(engine, "again", "new") == [5, 3]

    model = play(scenario, EngineConfig(cache_bytes=10_000))
    assert [texts for _, texts in model.batches] == [["again"], ["new"]]


def test_the_cache_stays_within_its_bytes() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        for number in range(100):
            await lengths(engine, f"text {number}")
        assert 0 < engine.cache.bytes <= 5000
        assert 0 < len(engine.cache) < 100
        await engine.unload("letters")
        assert (engine.cache.bytes, len(engine.cache)) == (0, 0)

    play(scenario, EngineConfig(cache_bytes=5000))


def test_the_work_of_a_client_that_has_gone_is_dropped() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        gone = asyncio.create_task(lengths(engine, "gone one", "gone two", "shared"))
        stays = asyncio.create_task(lengths(engine, "shared", "mine"))
        await until(lambda: queue_of(engine).tokens == 8 + 8 + 6 + 4)
        gone.cancel()
        await until(gone.done)
        assert queue_of(engine).tokens == 6 + 4
        model.gate.set()
        assert (await first, await stays) == ([5], [6, 4])
        assert (queue_of(engine).tokens, queue_of(engine).running, queue_of(engine).in_flight) == (0, 0, {})

    model = play(scenario)
    assert sorted(text for _, texts in model.batches for text in texts) == ["first", "mine", "shared"]


def test_a_client_that_goes_early_leaves_shared_texts_to_others() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.tokenizing.clear()
        gone = asyncio.create_task(lengths(engine, "a" * 70_000, "shared"))
        await until(lambda: bool(queue_of(engine).in_flight))
        stays = asyncio.create_task(lengths(engine, "shared"))
        await asyncio.sleep(0.01)
        gone.cancel()
        await until(gone.done)
        model.tokenizing.set()
        assert await stays == [6]
        await until(lambda: not engine._tokenizing)
        assert (queue_of(engine).tokens, queue_of(engine).in_flight) == (0, {})

    play(scenario)


def test_texts_that_nobody_waits_for_are_not_tokenized() -> None:
    first, second = "a" * 70_000, "b" * 70_000  # tokenized one after the other

    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.tokenizing.clear()
        gone = asyncio.create_task(lengths(engine, first, second))
        await until(lambda: bool(engine._tokenizing))
        await asyncio.sleep(0.01)
        gone.cancel()
        await until(gone.done)
        model.tokenizing.set()
        await until(lambda: not engine._tokenizing)

    assert second not in play(scenario).tokenized


def test_a_client_may_go_while_its_texts_are_computed() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        gone = asyncio.create_task(lengths(engine, "gone"))
        await until(lambda: queue_of(engine).running > 0)
        gone.cancel()
        await until(gone.done)
        model.gate.set()
        assert await lengths(engine, "next") == [4]
        assert (queue_of(engine).tokens, queue_of(engine).running, queue_of(engine).in_flight) == (0, 0, {})

    play(scenario)


def test_a_full_queue_refuses_at_once_and_says_when_to_try_again() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        waiting = asyncio.create_task(lengths(engine, "a" * 8, "b" * 8, "c" * 8))
        await until(lambda: queue_of(engine).tokens == 24)
        with pytest.raises(OverloadedError, match="max_queued_tokens 30") as refused:
            await lengths(engine, "d" * 60)
        assert refused.value.retry_after >= 1
        model.gate.set()
        assert (await first, await waiting) == ([5], [8, 8, 8])
        assert await lengths(engine, "d" * 8) == [8]

    play(scenario, EngineConfig(turn_tokens=8, max_queued_tokens=30))


def test_a_request_that_would_wait_too_long_is_refused() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, *(f"{number:050}" for number in range(40))))
        await until(lambda: queue_of(engine).running > 0)
        with pytest.raises(OverloadedError, match=r"max_wait_seconds 0\.1"):
            await lengths(engine, *("d" * 50 + str(number) for number in range(40)))
        model.gate.set()
        await first

    play(scenario, EngineConfig(turn_tokens=8, max_wait_seconds=0.1))


def test_the_engine_is_full_if_no_model_takes_another_text() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert not engine.is_full()
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, *(f"{number:050}" for number in range(40))))
        await until(lambda: queue_of(engine).running > 0)
        assert engine.is_full()
        await engine.load("other", LetterModel)
        assert not engine.is_full()
        model.gate.set()
        await first
        assert not engine.is_full()

    play(scenario, EngineConfig(turn_tokens=64, max_wait_seconds=0.01))


def test_an_engine_whose_wait_is_the_limit_takes_another_text() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "a" * 16))
        await until(lambda: queue_of(engine).running == 16)
        assert queue_of(engine).wait(1) == engine.config.max_wait_seconds
        assert not engine.is_full()
        model.gate.set()
        await first

    play(scenario, EngineConfig(max_wait_seconds=16 / FIRST_GUESS))


def test_the_engine_is_full_if_enough_tokens_wait() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        assert not engine.is_full()
        waiting = asyncio.create_task(lengths(engine, "a" * 8, "b" * 8, "c" * 8))
        await until(lambda: queue_of(engine).tokens == 24)
        assert engine.is_full()
        model.gate.set()
        await asyncio.gather(first, waiting)

    play(scenario, EngineConfig(turn_tokens=8, max_queued_tokens=24))


def test_work_of_other_models_makes_a_request_wait_too_long() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        await engine.load("other", LetterModel)
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "a" * 16))
        await until(lambda: queue_of(engine).running > 0)
        tasks = [first, asyncio.create_task(lengths(engine, "admitted"))]
        await until(lambda: queue_of(engine).tokens == 8)
        tasks.append(asyncio.create_task(engine.run("other", "candidate", ["b" * 16])))
        await until(lambda: engine._models["other"].queue.tokens == 16)
        with pytest.raises(OverloadedError):
            await lengths(engine, "refused")
        model.gate.set()
        await asyncio.gather(*tasks)

    play(scenario, EngineConfig(max_wait_seconds=36 / FIRST_GUESS))  # 16 + 8 tokens of one model, 48 of two


def test_a_long_text_counts_with_the_tokens_that_the_model_reads() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert await lengths(engine, "a" * 3 * model.max_tokens * 2) == [6000]

    play(scenario, EngineConfig(max_request_tokens=1500))


def test_a_token_array_counts_with_its_tokens() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        with pytest.raises(TooManyTokensError, match="about 152"):
            await engine.run("letters", "candidate", [TokenArray(tuple(range(150)))])

    play(scenario, EngineConfig(max_request_tokens=100))


def test_large_requests_leave_room_for_small_ones() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        bulk = asyncio.create_task(lengths(engine, *(f"{number:010}" for number in range(8))))
        await until(lambda: queue_of(engine).tokens == 80)
        with pytest.raises(OverloadedError):
            await lengths(engine, "e" * 33)
        small = asyncio.create_task(lengths(engine, "small"))
        await until(lambda: "small" in model.tokenized)
        model.gate.set()
        assert await small == [5]
        await asyncio.gather(first, bulk)

    play(scenario, EngineConfig(turn_tokens=8, max_queued_tokens=100))


def test_a_request_with_too_many_tokens_is_refused_even_if_nothing_waits() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        with pytest.raises(TooManyTokensError, match="may have 100 tokens"):
            await lengths(engine, "a" * 400)
        assert (queue_of(engine).tokens, queue_of(engine).in_flight) == (0, {})
        assert await lengths(engine, "a") == [1]

    play(scenario, EngineConfig(max_request_tokens=100))


def test_a_text_that_fails_fails_alone() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        model.gate.clear()
        first = asyncio.create_task(lengths(engine, "first"))
        await until(lambda: queue_of(engine).running > 0)
        tasks = [asyncio.create_task(lengths(engine, text)) for text in ("good", "bad!", "fine")]
        await until(lambda: queue_of(engine).tokens == 12)
        model.gate.set()
        good, bad, fine = await asyncio.gather(*tasks, return_exceptions=True)
        assert (good, fine) == ([4], [4])
        assert isinstance(bad, ModelError)
        await first
        assert queue_of(engine).in_flight == {}

    play(scenario)


def test_what_pairs_have_in_common_is_tokenized_once() -> None:
    query = "q" * 60_000
    pairs = [Item(key=number, text=(query, f"document {number}")) for number in range(50)]
    assert [len(part) for part in _parts(pairs)] == [50]
    assert len(_parts([Item(key=number, text=str(number) * 60_000) for number in range(5)])) == 5


def test_a_text_that_cannot_be_tokenized_fails_alone() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        bad = asyncio.create_task(lengths(engine, "shared", "what?"))
        good = asyncio.create_task(lengths(engine, "shared"))
        assert await good == [6]
        with pytest.raises(ModelError, match="cannot be tokenized"):
            await bad

    play(scenario)


def test_a_model_that_is_loaded_again_has_new_results() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        assert await lengths(engine, "text") == [4]
        await engine.unload("letters")
        other = LetterModel()
        other.run = lambda lane, tokens: [2 * len(text) for text in tokens]
        await engine.load("letters", lambda: other)
        assert await lengths(engine, "text") == [8]

    play(scenario, EngineConfig(cache_bytes=10_000))


def test_a_text_that_cannot_be_tokenized_fails_its_own_request() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        with pytest.raises(ModelError, match="cannot be tokenized"):
            await lengths(engine, "what?")
        assert await lengths(engine, "good") == [4]
        assert (queue_of(engine).tokens, queue_of(engine).in_flight) == (0, {})

    play(scenario)


def test_a_refusal_that_the_caller_sees_is_not_reported_by_asyncio_too() -> None:
    reported = list[object]()

    async def scenario(engine: Engine, model: LetterModel) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        model.gate.clear()
        busy = asyncio.create_task(lengths(engine, "a" * 50))
        await until(lambda: queue_of(engine).running > 0)
        with pytest.raises(OverloadedError):
            await lengths(engine, "refused")
        model.gate.set()
        await busy
        gc.collect()

    play(scenario, EngineConfig(max_wait_seconds=1 / FIRST_GUESS))
    assert reported == []


def test_models_are_loaded_and_unloaded_while_others_work() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        other = LetterModel()
        await engine.load("other", lambda: other)
        with pytest.raises(InputError, match="other is loaded already"):
            await engine.load("other", LetterModel)
        other.gate.clear()
        waiting = asyncio.create_task(engine.run("other", "candidate", ["last"]))
        await until(lambda: engine._models["other"].queue.running > 0)
        second = asyncio.create_task(engine.run("other", "candidate", ["second"]))
        await until(lambda: engine._models["other"].queue.tokens == 6)
        unloading = asyncio.create_task(engine.unload("other"))
        await asyncio.sleep(0.01)
        with pytest.raises(UnknownModelError, match="loaded models are letters"):
            await engine.run("other", "candidate", ["more"])
        other.gate.set()
        await unloading
        assert ((await waiting)[0].value, (await second)[0].value) == (4, 6)
        assert other.released == 1
        assert await lengths(engine, "still here") == [10]

    play(scenario)


def test_a_model_that_was_unloaded_is_not_kept_in_memory() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        await engine.load("other", LetterModel)
        await engine.run("other", "candidate", ["text"])
        other = weakref.ref(engine._models["other"].model)
        assert other() is not None
        await engine.unload("other")
        await lengths(engine, "another text")  # the engine's threads forget what they did last
        gc.collect()
        assert other() is None

    play(scenario)


def test_a_name_is_taken_while_its_model_is_loaded() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        go_on = threading.Event()

        def make() -> LetterModel:
            assert go_on.wait(10)
            return LetterModel()

        loading = asyncio.create_task(engine.load("other", make))
        await asyncio.sleep(0.01)
        with pytest.raises(InputError, match="other is loaded already"):
            await engine.load("other", LetterModel)
        go_on.set()
        await loading
        assert engine.names == ["letters", "other"]

    play(scenario)


def test_models_take_turns() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        other = LetterModel()
        other.batches = model.batches
        await engine.load("other", lambda: other)
        model.gate.clear()
        tasks = [asyncio.create_task(lengths(engine, *(f"{number:016}" for number in range(6))))]
        await until(lambda: queue_of(engine).running > 0)
        tasks.append(asyncio.create_task(engine.run("other", "candidate", ["other"])))
        await until(lambda: "other" in other.tokenized)
        model.gate.set()
        await asyncio.gather(*tasks)

    model = play(scenario)
    assert [texts for _, texts in model.batches].index(["other"]) <= 2


def test_memory_is_released_after_many_batches() -> None:
    async def scenario(engine: Engine, model: LetterModel) -> None:
        for number in range(70):
            await lengths(engine, f"text {number}")
        await until(lambda: model.released == 1)

    play(scenario)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("turn_tokens", 0), ("max_queued_tokens", -1), ("max_wait_seconds", 0.0), ("cache_bytes", -1)],
)
def test_settings_are_checked(setting: str, value: float) -> None:
    with pytest.raises(InputError, match=setting):
        EngineConfig(**{setting: value})
