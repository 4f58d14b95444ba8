"""The folder of a run, which says all about it.

``config.json`` (every setting), ``data.json`` (what was learnt from), ``environment.json`` (versions,
machine), ``metrics.jsonl`` (every number that was logged), ``curves.png``, ``checkpoints``, and at the end
``result.json`` and ``model``, the best one. While it is trained, ``.lock`` keeps others out.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from tercet.data.summary import summarise
from tercet.errors import InputError, OutputError
from tercet.extras import require
from tercet.files import PARTIAL, read_json, read_json_if_there, write_json, writing
from tercet.records import Lesson
from tercet.runtime.environment import environment
from tercet.training.callbacks import MetricsFile, Progress, StopOnInterrupt
from tercet.training.curves import draw_curves
from tercet.training.gather import count_of_processes, is_first_process, wait_for_all

if TYPE_CHECKING:
    from transformers import TrainerCallback


@dataclass(frozen=True)
class Teller:
    """How a run speaks to whoever started it; says nothing by default."""

    say: Callable[[str], None] = lambda _: None
    """A sentence about what is done next."""
    progress: Callable[[int, int, dict[str, float]], None] = lambda *_: None
    """Steps done, steps in all, and the newest numbers."""
    stoppable: bool = False
    """Whether Ctrl-C should end the training with a checkpoint."""


class RunFolder:
    """Where a run writes; of several processes, the first writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model"
        self.adapter = path / "adapter"
        self.before = path / "before"
        self.checkpoints = path / "checkpoints"
        self.metrics = path / "metrics.jsonl"
        self._config = path / "config.json"
        self._data = path / "data.json"
        self._result = path / "result.json"
        self._lock = path / ".lock"

    @contextmanager
    def open(self, config: Mapping[str, Any], *, resume: bool) -> Iterator[None]:
        """Make the folder, or make sure that what is there is this run; nobody else runs it meanwhile."""
        for module in ("accelerate", "matplotlib"):
            require(module, extra="train", purpose="training")  # asked now, not when hours have passed
        if not is_first_process():
            yield
            return
        self._make(resume=resume)
        with nullcontext() if resume and self.is_finished else self._alone():
            if resume:
                self._go_on(config)
            else:
                self._begin(config)
            yield

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.model.is_dir()

    def result(self) -> dict[str, Any]:
        """What came out of a finished run."""
        return read_json(self._result)

    def remember(self, sets: Mapping[str, Sequence[Lesson]], cuts: Mapping[str, Mapping[str, float]]) -> None:
        """Write down what is learnt from; who goes on must learn from the same, in as many processes."""
        if not is_first_process():
            return
        known = read_json_if_there(self._data).get("identity")
        found = {"processes": count_of_processes(), "lessons": _digest(sets)}
        if known is not None and known != found:
            raise InputError(
                f"{self.path} was begun with other data or another number of processes: "
                "start a new folder, or go on with the old ones"
            )
        described = {
            name: summarise(lessons) | {"cut by the model": cuts[name]} for name, lessons in sets.items()
        }
        write_json(self._data, {"identity": found, **described})

    def callbacks(self, teller: Teller) -> "list[TrainerCallback]":
        """What writes numbers down, tells how far the run is, and stops it when asked."""
        made: list[TrainerCallback] = [MetricsFile(self.metrics), Progress(teller.progress)]
        if teller.stoppable:
            made.append(StopOnInterrupt(lambda: teller.say("stopping after this step, with a checkpoint")))
        return made

    def finish(self, result: dict[str, Any], save: Callable[[Path], object]) -> dict[str, Any]:
        """Write all that a finished run has, the model last."""
        if is_first_process():
            with writing(self.model):
                draw_curves(self.metrics, self.path / "curves.png")
                write_json(self.path / "environment.json", environment())
                write_json(self._result, result)
                save(self.model)
        wait_for_all()
        return result

    def _make(self, *, resume: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path} is a file: a run is a folder")
        if resume and not self._config.is_file() and not self._only_described():
            raise OutputError(f"{self.path} is no run that could go on: choose another folder")
        if not resume and (self.is_finished or not self._config.is_file()):
            self._check_free()  # now, since no lock belongs into somebody's folder
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def _begin(self, config: Mapping[str, Any]) -> None:
        self._check_free()
        with writing(self._data):
            self._data.unlink(missing_ok=True)
        write_json(self._config, config)

    def _check_free(self) -> None:
        if not self._only_described():
            raise OutputError(
                f"{self.path} exists: choose another folder, or go on with it (resume=True, --resume)"
            )

    def _only_described(self) -> bool:
        """Whether there is no run, or it came no further than to say what it would do."""
        if not self.path.exists():
            return True
        there = {file.name for file in self.path.iterdir() if file.suffix != PARTIAL}
        return there <= {self._config.name, self._data.name, self._lock.name}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = FileLock(self._lock)
        with writing(self._lock):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise OutputError(
                    f"{self.path} is being trained by another process: wait for it, or choose another folder"
                ) from None
        try:
            yield
        finally:
            lock.release()

    def _go_on(self, config: Mapping[str, Any]) -> None:
        """Compare the settings with those that the run began with, or begin."""
        begun = read_json_if_there(self._config)
        if not begun:
            write_json(self._config, config)
            return
        changed = sorted(_changed(begun, json.loads(json.dumps(config))))
        if changed:
            raise InputError(
                f"{self.path} was begun with other settings ({', '.join(changed[:3])}): "
                "start a new folder, or go on with the old ones"
            )


def _changed(left: Any, right: Any, name: str = "") -> set[str]:
    """The settings in which two configs differ."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return set() if left == right else {name}
    return {
        each
        for key in left.keys() | right.keys()
        for each in _changed(left.get(key), right.get(key), f"{name}.{key}".lstrip("."))
    }


def _digest(sets: Mapping[str, Sequence[Lesson]]) -> str:
    """A short name for exactly these lessons."""
    digest = sha256()
    for name, lessons in sets.items():
        digest.update(name.encode())
        for lesson in lessons:
            digest.update(repr((lesson.context, lesson.candidates, lesson.targets)).encode())
    return digest.hexdigest()[:16]
