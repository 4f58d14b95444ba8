"""The folder of a run.

``config.json`` (all settings), ``data.json`` (a summary of the data), ``environment.json`` (versions and
machine), ``metrics.jsonl`` (the log), ``curves.png``, ``checkpoints``, and at the end ``result.json`` and
``model``, the best one. A lock file keeps other processes out while the run trains.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tercet.data.summary import summarize
from tercet.errors import InputError, OutputError
from tercet.evaluate.environment import environment
from tercet.extras import require
from tercet.files.atomic import PARTIAL, writing
from tercet.files.digest import rows_digest
from tercet.files.lock import exclusive
from tercet.files.removal import matches, remove_folder
from tercet.files.structured import json_text, read_json, read_json_if_exists, write_json
from tercet.records import Example
from tercet.training.callbacks import MetricsFile, Progress, StopOnInterrupt
from tercet.training.checkpoints import FILES as CHECKPOINT_FILES
from tercet.training.curves import draw_curves
from tercet.training.distributed import is_first_process, process_count, wait_for_all
from tercet.training.reporter import Reporter

if TYPE_CHECKING:
    from transformers import TrainerCallback


_MODEL_FILES = ("*.json", "*.safetensors", "*.txt", "*.md", "*.model", "*.jinja")
_is_run_file = matches(
    *("config.json", "data.json", "environment.json", "metrics.jsonl", "curves.png", "result.json", ".lock"),
    *(".????????????.partial", ".????????????.partial/*", "model", "adapter", "extension", "before"),
    "checkpoints",
    *(f"{folder}/{file}" for folder in ("model", "adapter", "extension") for file in _MODEL_FILES),
    *("checkpoints/checkpoint-*[0-9]", "checkpoints/tensorboard/*"),
    *(f"checkpoints/checkpoint-*[0-9]/{file}" for file in CHECKPOINT_FILES),
)


class RunFolder:
    """The files of a run. With several processes, only the first one writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model"
        self.adapter = path / "adapter"
        self.extension = path / "extension"
        self.before = path / "before"
        self.checkpoints = path / "checkpoints"
        self.metrics = path / "metrics.jsonl"
        self._config = path / "config.json"
        self._data = path / "data.json"
        self._result = path / "result.json"
        self._lock = path / ".lock"

    @contextmanager
    def open(self, config: Mapping[str, Any], *, resume: bool) -> Iterator[None]:
        """Create the folder or check that it belongs to this run, and lock it."""
        for module in ("accelerate", "matplotlib"):
            require(module, extra="train", purpose="training")  # fail now, not after hours
        if not is_first_process():
            yield
            return
        self._create(resume=resume)
        with nullcontext() if resume and self.is_finished else exclusive(self._lock, self._refuse):
            if resume:
                self._resume(config)
            else:
                self._start(config)
            yield

    @property
    def is_finished(self) -> bool:
        """Whether the run has a model."""
        return self.model.is_dir()

    def result(self) -> dict[str, Any]:
        """The result of a finished run."""
        return read_json(self._result)

    def record_data(
        self,
        splits: Mapping[str, Sequence[Example]],
        truncated: Mapping[str, Mapping[str, float]],
        *,
        threads: int | None,
    ) -> None:
        """Write a summary of the data; a resumed run must have the same data, processes and threads.

        Args:
            threads: torch's number of threads, on which the sums of a CPU depend; None on a GPU.
        """
        if not is_first_process():
            return
        identity = {"processes": process_count(), "examples": _digest(splits), "threads": threads}
        self._check_identity(read_json_if_exists(self._data).get("identity") or identity, identity)
        summaries = {
            name: summarize(examples) | {"truncated": truncated[name]} for name, examples in splits.items()
        }
        write_json(self._data, {"identity": identity, **summaries})

    def callbacks(self, reporter: Reporter) -> "list[TrainerCallback]":
        """The callbacks that log metrics, report progress, and stop the run on Ctrl-C."""
        callbacks: list[TrainerCallback] = [MetricsFile(self.metrics), Progress(reporter.progress)]
        if reporter.stoppable:
            callbacks.append(
                StopOnInterrupt(lambda: reporter.report("stopping after this step, with a checkpoint"))
            )
        return callbacks

    def finish(self, result: dict[str, Any], save: Callable[[Path], object]) -> dict[str, Any]:
        """Write the results of a finished run, the model last."""
        if is_first_process():
            with writing(self.model):
                draw_curves(self.metrics, self.path / "curves.png")
                write_json(self.path / "environment.json", environment())
                write_json(self._result, result)
                save(self.model)
        wait_for_all()
        return result

    def remove(self) -> None:
        """Delete the folder; raise if it contains files that no run wrote."""
        with writing(self.path):
            remove_folder(self.path, lambda name: _is_run_file(_without_before(name)))

    @staticmethod
    def remove_model(folder: Path) -> None:
        """Delete the adapters or the extension of a run that was killed just after it had written them."""
        remove_folder(folder, matches(*_MODEL_FILES))

    def _create(self, *, resume: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path} is a file: a run needs a folder")
        for folder in (self.checkpoints, self.adapter, self.extension, self.before):
            if folder.is_symlink():  # a run deletes old files there
                raise OutputError(f"{folder} is a link, and a run needs a folder: replace it by one")
        if resume and not self._config.is_file() and not self._has_no_results():
            raise OutputError(f"{self.path} is not a resumable run: choose another folder")
        if not resume and (self.is_finished or not self._config.is_file()):
            self._check_free()  # before a lock file is written into a folder that is not a run
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def _start(self, config: Mapping[str, Any]) -> None:
        self._check_free()
        with writing(self._data):
            self._data.unlink(missing_ok=True)
        write_json(self._config, config)

    def _resume(self, config: Mapping[str, Any]) -> None:
        """Check that the settings are those that the run was started with."""
        started = read_json_if_exists(self._config)
        if not started:
            write_json(self._config, config)
            return
        changed = sorted(_changed(started, json.loads(json_text(config))))
        if changed:
            raise InputError(
                f"{self.path} was started with other settings ({', '.join(changed[:3])}): use a new "
                "folder, or restore them"
            )

    def _check_identity(self, started: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        if any(started.get(name) != now[name] for name in ("processes", "examples")):
            raise InputError(
                f"{self.path} was started with other data or another number of processes: use a new "
                "folder, or restore them"
            )
        before, threads = started.get("threads"), now["threads"]
        if before is not None and threads is not None and before != threads:
            raise InputError(
                f"{self.path} was started with {before} CPU threads, got {threads}, which would change the "
                f"model: set OMP_NUM_THREADS={before} to resume, or use a new folder"
            )

    def _check_free(self) -> None:
        if not self._has_no_results():
            raise OutputError(
                f"{self.path} exists: choose another folder, or continue the run (resume=True, --resume)"
            )

    def _has_no_results(self) -> bool:
        """Whether there is no run, or one that has not started training."""
        if not self.path.exists():
            return True
        names = {file.name for file in self.path.iterdir() if not PARTIAL.fullmatch(file.name)}
        return names <= {self._config.name, self._data.name, self._lock.name}

    def _refuse(self) -> None:
        raise OutputError(
            f"another process is training in {self.path}: wait for it, or choose another folder"
        )


def _without_before(name: str) -> str:
    """A file's name in its own run, which may be the one before this run, or the one before that."""
    while name.startswith("before/"):
        name = name.removeprefix("before/")
    return name


def _changed(left: Any, right: Any, name: str = "") -> set[str]:
    """The names of the settings in which two configs differ."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return set() if left == right else {name}
    return {
        each
        for key in left.keys() | right.keys()
        for each in _changed(left.get(key), right.get(key), f"{name}.{key}".lstrip("."))
    }


def _digest(splits: Mapping[str, Sequence[Example]]) -> str:
    """A short digest of the examples of all splits."""
    return rows_digest(
        (name, example.context, example.candidates, example.targets)
        for name, examples in splits.items()
        for example in examples
    )
