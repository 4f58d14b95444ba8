"""The engine: texts of many requests in batches by tokens, through several models. It knows nothing of HTTP.

Requests arrive on the event loop. Texts are tokenized in threads, while one other thread runs the models. All
bookkeeping is done by the event loop's thread, so nothing needs a lock.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any

from tercet.errors import InputError, OverloadedError, TercetError
from tercet.inputs import SHOWN_CHARACTERS, shortened
from tercet.serve.cache import ResultCache
from tercet.serve.models import ServedModel, TokenArray
from tercet.serve.observer import Observer
from tercet.serve.overload import CURRENT, RETRY_SECONDS, Overload, Request
from tercet.serve.queue import Batch, ModelQueue
from tercet.serve.work import Item, Job, Lane, Result, Share, Tokenized
from tercet.settings.engine import EngineConfig

TOKENIZED_AT_ONCE = 65_536
"""Characters that one thread tokenizes before other requests have their turn."""
CHARACTERS_PER_TOKEN = 3
"""For the estimate that admits a request before it is tokenized."""
RELEASED_AFTER = 64
"""Batches after which unused memory is returned to the system."""


class UnknownModelError(InputError):
    """No model of that name is loaded."""


class TooManyTokensError(InputError):
    """A request has more tokens than one may have."""


class Loaded:
    """A model and its queue."""

    def __init__(self, name: str, model: ServedModel, queue: ModelQueue) -> None:
        self.name, self.model, self.queue = name, model, queue
        self.batches_since_release = 0


class Engine:
    """Runs texts of concurrent requests through models. Create and use it in one event loop.

    Args:
        answer_seconds: a request that would take longer, in a busy engine, is refused.
    """

    def __init__(
        self,
        config: EngineConfig | None = None,
        observer: Observer | None = None,
        *,
        answer_seconds: float = inf,
    ) -> None:
        self.config, self.answer_seconds = config or EngineConfig(), answer_seconds
        self.observer = observer or Observer()
        self.cache = ResultCache(self.config.cache_bytes)
        self.overload = Overload(self.config.burst_requests)
        self._models: dict[str, Loaded] = {}
        self._turns: deque[Loaded] = deque()
        self._running = 0
        self._pumping = False
        self._forward = ThreadPoolExecutor(1, "tercet-forward")
        self._tokenizers = ThreadPoolExecutor(self.config.tokenizer_threads, "tercet-tokenize")
        self._loop = asyncio.get_running_loop()
        self._loading: set[str] = set()
        self._tokenizing: set[asyncio.Task[None]] = set()

    @property
    def names(self) -> list[str]:
        """The names of the loaded models."""
        return list(self._models)

    def queued_tokens(self) -> dict[str, int]:
        """Tokens that wait for each model."""
        return {name: loaded.queue.tokens for name, loaded in self._models.items()}

    def is_full(self) -> bool:
        """Whether every model would refuse even the shortest text. An overload goes on if so."""
        limit, busy = self.config.max_wait_seconds, self._busy_models()
        queues = [loaded.queue for loaded in self._models.values()]
        if queues and self.overload.is_active and all(map(self._keeps_waiting, queues)):
            self.overload.prolong()
            return True
        return bool(queues) and all(
            queue.wait(1, busy_models=busy) > limit or queue.tokens >= self.config.max_queued_tokens
            for queue in queues
        )

    def model(self, name: str) -> Any:
        """A loaded model."""
        return self._loaded(name).model

    async def load(self, name: str, make: Callable[[], ServedModel]) -> None:
        """Make a model in another thread and serve it under a name.

        Args:
            make: creates the model; it may take long.
        """
        if name in self._models or name in self._loading:
            raise InputError(f"a model {name} is loaded already: unload it first, or choose another name")
        self._loading.add(name)
        try:
            model = await asyncio.to_thread(make)
        finally:
            self._loading.discard(name)
        queue = ModelQueue(self.config, batch_tokens=model.batch_tokens, answer_seconds=self.answer_seconds)
        self._models[name] = loaded = Loaded(name, model, queue)
        self._turns.append(loaded)

    async def unload(self, name: str) -> None:
        """Stop serving a model; requests that wait for it are answered first."""
        loaded = self._loaded(name)
        del self._models[name]
        while loaded.queue.in_flight:
            await asyncio.sleep(0.01)
        self._turns.remove(loaded)
        self.cache.forget(loaded)
        await self._loop.run_in_executor(self._forward, loaded.model.release_memory)

    async def run(self, name: str, lane: Lane, texts: Sequence[Any]) -> list[Result]:
        """The results of texts, in order. If the caller is cancelled, what nobody else needs is dropped.

        Raises:
            OverloadedError: too much waits already.
        """
        loaded = self._loaded(name)
        if not texts:
            return []
        request = CURRENT.get() or Request()
        began, is_idle = time.perf_counter(), self._is_idle
        job = Job(self._loop.create_future(), [None] * len(texts), len(texts))
        job.done.add_done_callback(_seen)
        items, new = self._join(loaded, lane, texts, job)
        if new:
            self._start(loaded, lane, new, request)
        try:
            with self.overload.waiting(request):
                self._shed()
                results = await job.done
        finally:
            if job.missing:  # the caller is cancelled, or an item failed
                _abandon(loaded.queue, items, job)
        if new and is_idle and not self.overload.is_active:
            loaded.queue.undisturbed.add(time.perf_counter() - began)
        return results

    async def close(self) -> None:
        """Stop the threads, after the forward passes that are running."""
        self._models.clear()
        await asyncio.to_thread(self._forward.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._tokenizers.shutdown, cancel_futures=True)

    @property
    def _is_idle(self) -> bool:
        queues = (loaded.queue for loaded in self._models.values())
        return not any(queue.tokens or queue.running for queue in queues)

    def _keeps_waiting(self, queue: ModelQueue, estimate: int = 1) -> bool:
        """Whether a new request would wait longer than it may in an overload, where models take turns."""
        ahead = sum(loaded.queue.seconds_ahead(estimate) for loaded in self._models.values())
        return ahead > queue.patience

    def _shed(self) -> None:
        """If an overload begins, refuse the requests that already wait, but those that come soon or have
        begun."""
        if not self.overload.begins:
            return
        self.overload.prolong()
        error = _overloaded()
        for loaded in self._models.values():
            for item in list(loaded.queue.late(_estimated)):
                if not any(job.has_begun for job, _ in item.waiters):
                    _fail(loaded.queue, [item], error)

    def _busy_models(self, joined: ModelQueue | None = None) -> int:
        """How many models have work, or are about to have some."""
        queues = (loaded.queue for loaded in self._models.values())
        return sum(queue is joined or queue.tokens > 0 for queue in queues) or 1

    def _loaded(self, name: str) -> Loaded:
        loaded = self._models.get(name)
        if loaded is None:
            known = ", ".join(self._models) or "none"
            given = shortened(repr(name), SHOWN_CHARACTERS)
            raise UnknownModelError(f"there is no model {given}: loaded models are {known}")
        return loaded

    def _join(
        self, loaded: Loaded, lane: Lane, texts: Sequence[Any], job: Job
    ) -> tuple[list[Item], list[Item]]:
        """The items that the job waits for, and those of them that nobody computes yet."""
        queue, items, new = loaded.queue, [], []
        for position, text in enumerate(texts):
            key: Hashable = (loaded, lane, text)
            known = self.cache.get(key) if self.cache.max_bytes else None
            if known is not None:
                job.receive(position, known)
                continue
            item = queue.in_flight.get(key)
            if item is None:
                item = queue.in_flight[key] = Item(key, text)
                new.append(item)
            item.waiters.append((job, position))
            items.append(item)
        return items, new

    def _start(self, loaded: Loaded, lane: Lane, items: Sequence[Item], request: Request) -> None:
        """Admit items and tokenize them in a task of the engine: other requests may wait for them too."""
        queue, most = loaded.queue, loaded.model.max_tokens
        estimate = sum(min(most, _estimated(item)) for item in items)
        try:
            if estimate > self.config.max_request_tokens:
                raise TooManyTokensError(
                    f"a request may have {self.config.max_request_tokens:,} tokens (max_request_tokens), and "
                    f"this one has about {estimate:,}: send fewer or shorter texts at a time"
                )
            if self.overload.is_active and not request.admitted and self._keeps_waiting(queue, estimate):
                self.overload.prolong()
                raise _overloaded()
            queue.admit(estimate, busy_models=self._busy_models(queue))
            request.admitted = True
        except TercetError as error:
            _fail(queue, items, error)
            raise
        task = self._loop.create_task(self._tokenize(loaded, lane, items, estimate))
        self._tokenizing.add(task)
        task.add_done_callback(self._tokenizing.discard)

    async def _tokenize(self, loaded: Loaded, lane: Lane, items: Sequence[Item], estimate: int) -> None:
        """Tokenize items in threads, a part at a time, and let each part wait in the queue."""
        try:
            for part in _parts(items):
                wanted = [item for item in part if item.wanted]
                if wanted:
                    await self._tokenize_part(loaded, lane, wanted)
        finally:
            loaded.queue.release(estimate)

    async def _tokenize_part(self, loaded: Loaded, lane: Lane, items: Sequence[Item]) -> None:
        """Tokenize items together; if that fails, each alone, so that only the bad ones fail."""
        began = time.perf_counter()
        try:
            tokens = await self._loop.run_in_executor(self._tokenizers, _tokens, loaded.model, lane, items)
        except Exception as error:
            if len(items) == 1:
                _fail(loaded.queue, items, error)
                return
            for item in items:
                await self._tokenize_part(loaded, lane, [item])
            return
        if tokens is None:
            return
        now = time.perf_counter()
        for item, found in zip(items, tokens, strict=True):
            item.tokens, item.since = found, now
        truncated = sum(any(found.truncated) for found in tokens)
        self.observer.tokenized(loaded.name, len(items), truncated, now - began)
        wanted = sorted((item for item in items if item.wanted), key=lambda item: -item.cost)
        if wanted:
            loaded.queue.push(Share(lane, wanted))
            self._wake()

    def _wake(self) -> None:
        """Form batches soon; requests that arrive together then share one."""
        if not self._pumping:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Give the model's thread a batch if it is idle, and full ones ahead of their time."""
        self._pumping = False
        while self._running < self.config.batches_ahead:
            loaded, batch = self._next_batch()
            if loaded is None or batch is None:
                return
            self._running += 1
            first = min(item.since for item in batch.items)
            self.observer.waited(loaded.name, time.perf_counter() - first)
            payloads = [item.tokens.payload for item in batch.items if item.tokens is not None]
            future = self._forward.submit(self._compute, loaded, batch.lane, payloads)
            future.add_done_callback(self._finisher(loaded, batch))

    def _next_batch(self) -> tuple[Loaded | None, Batch | None]:
        """The batch of the model whose turn it is."""
        for _ in range(len(self._turns)):
            loaded = self._turns[0]
            self._turns.rotate(-1)
            if self._running and not loaded.queue.has_full_batch:
                continue
            batch = loaded.queue.take(overloaded=self.overload.is_active)
            if batch is not None:
                return loaded, batch
        return None, None

    def _compute(self, loaded: Loaded, lane: Lane, payloads: Sequence[Any]) -> tuple[list[Any], float]:
        """In the model's thread: the results, or for each item alone an error if the batch fails."""
        began = time.perf_counter()
        try:
            values = loaded.model.run(lane, payloads)
        except Exception as error:
            values = (
                [error] if len(payloads) == 1 else [_alone(loaded.model, lane, each) for each in payloads]
            )
        return values, time.perf_counter() - began

    def _finisher(self, loaded: Loaded, batch: Batch) -> Callable[[ThreadFuture[Any]], None]:
        def finish(future: ThreadFuture[Any]) -> None:
            if not future.cancelled():
                self._loop.call_soon_threadsafe(self._finish, loaded, batch, *future.result())

        return finish

    def _finish(self, loaded: Loaded, batch: Batch, values: Sequence[Any], seconds: float) -> None:
        """Deliver the results of a batch and start the next one."""
        self._running -= 1
        loaded.queue.finish(batch, seconds)
        self._pump()
        self.observer.computed(loaded.name, batch.lane, len(batch.items), batch.cost, seconds)
        for item, value in zip(batch.items, values, strict=True):
            if isinstance(value, BaseException):
                item.fail(value)
                continue
            tokens = item.tokens or Tokenized(None, 0, 0)
            result = Result(value, tokens.tokens, tokens.truncated)
            if self.cache.max_bytes:
                self.cache.put(item.key, result, characters=_characters(item.text))
            item.deliver(result)
        self._release_memory(loaded)

    def _release_memory(self, loaded: Loaded) -> None:
        """Return unused memory to the system from time to time."""
        loaded.batches_since_release += 1
        if loaded.batches_since_release >= RELEASED_AFTER:
            loaded.batches_since_release = 0
            self._forward.submit(loaded.model.release_memory)


def _seen(future: "asyncio.Future[Any]") -> None:
    """Note an error that also reaches the caller in another way, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()


def _abandon(queue: ModelQueue, items: Sequence[Item], job: Job) -> None:
    """A job no longer waits for its items; what nobody waits for is dropped."""
    for item in items:
        item.abandon(job)
        if not item.wanted:
            queue.drop(item)


def _fail(queue: ModelQueue, items: Sequence[Item], error: BaseException) -> None:
    for item in items:
        queue.drop(item)
        item.fail(error)


def _tokens(model: ServedModel, lane: Lane, items: Sequence[Item]) -> list[Tokenized] | None:
    """In a thread: the tokens of items, or None if nobody waits for them any more."""
    if not any(item.wanted for item in items):
        return None
    return model.tokenize(lane, [item.text for item in items])


def _alone(model: ServedModel, lane: Lane, payload: Any) -> Any:
    """The result of one item, or its error."""
    try:
        return model.run(lane, [payload])[0]
    except Exception as error:
        return error


def _overloaded() -> OverloadedError:
    return OverloadedError(
        "more requests come than the models can answer: try again later", retry_after=RETRY_SECONDS
    )


def _estimated(item: Item) -> int:
    """About how many tokens an item has that is not tokenized yet."""
    return _characters(item.text) // CHARACTERS_PER_TOKEN + 2


def _characters(text: Any) -> int:
    """The length of a text, the turns of a dialogue, a pair or a token array."""
    if isinstance(text, str):
        return len(text)
    if isinstance(text, TokenArray):
        return CHARACTERS_PER_TOKEN * len(text.ids)
    return sum(map(_characters, text)) if isinstance(text, tuple) else 0


def _parts(items: Sequence[Item]) -> list[list[Item]]:
    """The items in lists of a limited number of characters; what pairs have in common counts once."""
    parts: list[list[Item]] = [[]]
    filled = 0
    counted: set[int] = set()
    for item in items:
        texts = item.text if isinstance(item.text, tuple) else (item.text,)
        size = sum(_characters(text) for text in texts if id(text) not in counted)
        if parts[-1] and filled + size > TOKENIZED_AT_ONCE:
            parts.append([])
            filled, counted = 0, set()
            size = sum(map(_characters, texts))
        counted.update(map(id, texts))
        parts[-1].append(item)
        filled += size
    return parts
