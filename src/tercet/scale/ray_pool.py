"""Workers on a Ray cluster: actors that load a model once and do one part after another.

A dead worker is started again by Ray, and its parts go to whichever worker is free. Each worker has at most
two parts, so the input is read no faster than it is worked on.
"""

import os
import socket
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tercet.errors import InputError, WorkerError
from tercet.extras import require
from tercet.files.structured import json_text
from tercet.scale.job import Done
from tercet.scale.parts import Part
from tercet.scale.work import Record, Task, Work
from tercet.settings.bulk import WorkersConfig

PARTS_PER_WORKER = 2
"""One to work on, and one that waits: no worker is idle while its last result travels."""
SECONDS_BEFORE_NOTE = 30.0
"""How long a job waits for its first worker before it says so."""
SECONDS_TO_CONNECT = 10.0
SHOWN_REASON = 300
"""Characters of Ray's reason for a death."""
LOCAL_OBJECT_BYTES = 512 << 20
"""Shared memory of a local Ray for parts and tables on their way."""


class Worker:
    """A process with a loaded model. It is loaded by ``open``, whose errors reach the caller as they are."""

    def __init__(self, task: Task, device: str) -> None:
        self._task, self._device = task, device
        self._work: Work | None = None

    def open(self) -> dict[str, Any]:
        """Load the model; returns the facts of the work."""
        return self._opened().facts()

    def run(self, records: list[Record]) -> Any:
        """The table of a part."""
        return self._opened().run(records)

    def _opened(self) -> Work:
        if self._work is None:
            self._work = self._task.start(self._device)
        return self._work


class _Waiting:
    """The parts that no worker has: those of dead workers first, then new ones."""

    def __init__(self, new: Iterator[Part], again: "deque[Part]") -> None:
        self._new, self._again = new, again
        self._exhausted = False

    @property
    def is_empty(self) -> bool:
        """Whether there are no parts left, as far as ``take`` has seen."""
        return self._exhausted and not self._again

    def take(self) -> Part | None:
        """The next part; None if there is none."""
        if self._again:
            return self._again.popleft()
        part = next(self._new, None)
        self._exhausted = part is None
        return part


@contextmanager
def ray_pool(task: Task, config: WorkersConfig) -> "Iterator[RayPool]":
    """Workers on a cluster, which end with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = require("ray", extra="ray", purpose="a job with several workers")
    started = not ray.is_initialized()
    if started:
        _connect(ray, config)
    pool = RayPool(ray, task, config)
    try:
        yield pool
    finally:
        pool.close()
        if started:
            ray.shutdown()


def _connect(ray: Any, config: WorkersConfig) -> None:
    """Connect to the cluster, or start one on this machine whose dashboard only this machine can open."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if config.address is not None:
            _check_reachable(config.address)
            ray.init(address=config.address, **quiet)
            return
        ray.init(
            address="local",  # not a cluster that happens to run here
            num_cpus=config.workers * config.cpus_per_worker + config.gpu_workers,
            num_gpus=config.gpu_workers or None,
            include_dashboard=True,
            dashboard_host="127.0.0.1",
            object_store_memory=LOCAL_OBJECT_BYTES,
            **quiet,
        )
    except (ConnectionError, OSError, OverflowError, RuntimeError, ValueError) as error:
        raise WorkerError(
            f"cannot use Ray at {config.address or 'this machine'}: {error}: check the address, and that the "
            "versions of Ray and Python are the same there"
        ) from None


def _check_reachable(address: str) -> None:
    """Raise an OSError if nothing answers at ``HOST:PORT``, which Ray itself notices after minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():  # otherwise a word of Ray's, such as auto
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_CONNECT).close()


class RayPool:
    """The workers of a job."""

    def __init__(self, ray: Any, task: Task, config: WorkersConfig) -> None:
        self._ray, self._attempts = ray, config.attempts
        self._task = ray.put(task)
        self._workers = [
            *(self._start("cpu", config) for _ in range(config.workers)),
            *(self._start("cuda", config) for _ in range(config.gpu_workers)),
        ]
        self._facts: dict[str, Any] | None = None
        self._opening = {worker.open.remote(): worker for worker in self._workers}
        self._running: dict[Any, tuple[Any, Part]] = {}
        self._again: deque[Part] = deque()
        self._failures: dict[int, int] = {}
        self._deaths = 0

    def facts(self) -> dict[str, Any]:
        """Those of the first worker that is ready. The others may join later, and must agree."""
        while self._facts is None:
            self._wait()
        return self._facts

    def run(self, parts: Iterable[Part]) -> Iterator[Done]:
        """The parts as they get done."""
        waiting = _Waiting(iter(parts), self._again)
        while True:
            self._fill(waiting)
            if waiting.is_empty and not self._running:
                return
            yield from self._wait()

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            self._ray.kill(worker)

    def _start(self, device: str, config: WorkersConfig) -> Any:
        options = {"num_cpus": config.cpus_per_worker, "num_gpus": int(device == "cuda"), "max_restarts": -1}
        environment = {"OMP_NUM_THREADS": str(config.cpus_per_worker), "TOKENIZERS_PARALLELISM": "false"}
        actor = self._ray.remote(Worker).options(**options, runtime_env={"env_vars": environment})
        return actor.remote(self._task, device)

    def _fill(self, waiting: "_Waiting") -> None:
        """Give parts to the workers that are ready, the least busy first."""
        opening = list(self._opening.values())
        busy = [worker for worker, _ in self._running.values()]
        ready = [worker for worker in self._workers if worker not in opening]
        for room in range(PARTS_PER_WORKER):
            for worker in ready:
                if busy.count(worker) > room:
                    continue
                part = waiting.take()
                if part is None:
                    return
                task = worker.run.options(name=f"part {part.number}").remote(part.records)
                self._running[task] = worker, part
                busy.append(worker)

    def _wait(self) -> list[Done]:
        """What has been done when the next worker reports."""
        everything = [*self._running, *self._opening]
        done, _ = self._ray.wait(everything, num_returns=1, timeout=SECONDS_BEFORE_NOTE)
        if not done and not self._running:
            free = {
                name: count for name, count in self._ray.cluster_resources().items() if name in ("CPU", "GPU")
            }
            warnings.warn(
                f"waiting for workers: the cluster has {json_text(free)} in all, and {len(self._workers)} "
                "workers "
                "want to start",
                stacklevel=2,
            )
        return [result for each in done if (result := self._result(each)) is not None]

    def _result(self, reference: Any) -> Done | None:
        if reference in self._opening:
            worker = self._opening.pop(reference)
            facts = self._get(reference, worker)
            if facts is not None:
                self._check(facts)
            return None
        worker, part = self._running.pop(reference)
        table = self._get(reference, worker)
        if table is not None:
            return Done(part, table)
        self._failures[part.number] = self._failures.get(part.number, 0) + 1
        if self._failures[part.number] >= self._attempts:
            last = part.first_row + len(part.records) - 1
            raise WorkerError(
                f"{self._attempts} workers died at rows {part.first_row:,} to {last:,}: give a worker more "
                "memory, "
                "or make the shards smaller (--rows-per-shard)"
            )
        self._again.append(part)
        return None

    def _get(self, reference: Any, worker: Any) -> Any:
        """The result; None if the worker died, and is opened again as soon as Ray has started it."""
        errors = self._ray.exceptions
        try:
            result = self._ray.get(reference)
            self._deaths = 0
            return result
        except (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        ) as death:
            self._deaths += 1
            if self._deaths > self._attempts * len(self._workers):
                raise WorkerError(
                    f"workers died {self._deaths} times without finishing anything, lastly because "
                    f"{' '.join(str(death).split())[:SHOWN_REASON]}: give them more memory, or start fewer"
                ) from None
            if worker not in self._opening.values():
                self._opening[worker.open.remote()] = worker
            return None
        except errors.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, Exception) else error) from None

    def _check(self, facts: dict[str, Any]) -> None:
        """Raise if a worker has another model than the first one."""
        if self._facts is None:
            self._facts = facts
        elif facts != self._facts:
            raise InputError(
                f"all workers need the same model: one has {json_text(self._facts)}, another "
                f"{json_text(facts)}: "
                "install the same version of tercet and the same model on all nodes"
            )
