"""Prometheus metrics of the server."""

import asyncio
import os
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
    multiprocess,
)

from tercet.serve.observer import Observer
from tercet.serve.work import Lane

if TYPE_CHECKING:
    from tercet.serve.engine import Engine

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TOKENS = (8, 32, 128, 512, 1024, 2048, 8192, 32768)
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Set by the command for several workers, whose metrics are then added up."""
MEASURED_EVERY = 2.0
"""Seconds between two measurements of queues, cache and memory in each of several workers."""


class Metrics(Observer):
    """Counts and times of requests and of the engine."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        options: dict[str, Any] = {"registry": self.registry}
        gauge: dict[str, Any] = {**options, "multiprocess_mode": "livesum"}
        self.requests = Counter(
            "tercet_requests_total", "Requests by route and status.", ["route", "status"], **options
        )
        self.request_seconds = Histogram(
            "tercet_request_seconds", "Time from request to answer.", ["route"], buckets=SECONDS, **options
        )
        self.open_requests = Gauge("tercet_open_requests", "Requests that are being answered.", **gauge)
        self.stage_seconds = Histogram(
            "tercet_stage_seconds",
            "Time in a stage: tokenize, queue, forward.",
            ["stage", "model"],
            buckets=SECONDS,
            **options,
        )
        self.batch_tokens = Histogram(
            "tercet_batch_tokens", "Tokens in a forward pass.", ["model"], buckets=TOKENS, **options
        )
        self.texts = Counter("tercet_texts_total", "Texts and pairs computed.", ["model", "lane"], **options)
        self.truncated = Counter(
            "tercet_truncated_texts_total",
            "Texts that were longer than the model reads.",
            ["model"],
            **options,
        )
        self.errors = Counter("tercet_errors_total", "Refused and failed requests.", ["type"], **options)
        self.queue_tokens = Gauge("tercet_queue_tokens", "Tokens that wait.", ["model"], **gauge)
        self.cache_bytes = Gauge("tercet_cache_bytes", "Memory of cached results.", **gauge)
        self.memory_bytes = Gauge("tercet_memory_bytes", "Resident memory.", **gauge)
        if SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self.registry)

    def tokenized(self, model: str, texts: int, truncated: int, seconds: float) -> None:
        """Texts were tokenized."""
        self.stage_seconds.labels("tokenize", model).observe(seconds)
        if truncated:
            self.truncated.labels(model).inc(truncated)

    def computed(self, model: str, lane: Lane, texts: int, tokens: int, seconds: float) -> None:
        """A batch passed through a model."""
        self.stage_seconds.labels("forward", model).observe(seconds)
        self.batch_tokens.labels(model).observe(tokens)
        self.texts.labels(model, lane).inc(texts)

    def waited(self, model: str, seconds: float) -> None:
        """The first item of a batch waited for its turn."""
        self.stage_seconds.labels("queue", model).observe(seconds)

    def measure(self, engine: "Engine") -> None:
        """Note the queues, the cache and the memory of this process."""
        for name, tokens in engine.queued_tokens().items():
            self.queue_tokens.labels(name).set(tokens)
        self.cache_bytes.set(engine.cache.bytes)
        self.memory_bytes.set(_resident_bytes())

    async def keep_measuring(self, engine: "Engine") -> None:
        """Measure from time to time: only one of several workers is asked for the metrics of all."""
        while SHARED_FOLDER in os.environ:
            self.measure(engine)
            await asyncio.sleep(MEASURED_EVERY)

    def text(self, engine: "Engine") -> bytes:
        """All metrics in Prometheus' format; those of all workers, if there are several."""
        self.measure(engine)
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        collector: Any = multiprocess.MultiProcessCollector
        collector(shared)
        return generate_latest(shared)


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 (not a file of ours)
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
