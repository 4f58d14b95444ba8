"""Cached steps: each result is kept as long as its inputs stay the same.

Beside ``NAME`` is ``NAME.from.json`` with the inputs: settings, and digests of files. An interrupted run
finds its results again, and a changed setting repeats only the steps that depend on it. Several processes may
share a folder: each waits for results that another one is computing.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tercet.errors import OutputError
from tercet.files.atomic import full_disk_named, new_file, writing
from tercet.files.lock import exclusive
from tercet.files.structured import json_text, write_json
from tercet.training.run_folder import RunFolder

MARK = "augment.json"
"""The file that marks a folder of ``tercet augment``; other folders are refused."""
LOCKS = ".locks"


class Step(ABC):
    """A result with declared inputs."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the file or folder."""

    @abstractmethod
    def inputs(self) -> Mapping[str, Any]:
        """Everything that the result depends on, as JSON can represent it."""

    @abstractmethod
    def obtain(self, cache: "StepCache") -> Path:
        """The result, computed if the cache does not have it."""


class FileStep(Step):
    """A file that is written atomically."""

    @abstractmethod
    def write(self, file: Path) -> None:
        """Write the result."""

    def obtain(self, cache: "StepCache") -> Path:
        """The file."""
        path = cache.folder / self.name
        with cache.exclusive(self.name):
            if cache.has(path, self.inputs()):
                return path
            cache.start(path)
            with new_file(path, overwrite=True) as partial:
                self.write(partial)
            cache.record(path, self.inputs())
        return path


class GrowingFileStep(Step):
    """A file that is appended to, so that an interrupted run continues where it stopped."""

    @abstractmethod
    def append(self, file: Path) -> None:
        """Append what is missing."""

    def obtain(self, cache: "StepCache") -> Path:
        """The file."""
        path = cache.folder / self.name
        growing = path.with_name(f"{self.name}.growing")
        with cache.exclusive(self.name):
            if cache.has(path, self.inputs()):
                return path
            if not cache.has(growing, self.inputs()):
                growing.unlink(missing_ok=True)
                cache.record(growing, self.inputs())
                growing.touch()
            cache.start(path)
            with full_disk_named(path):
                self.append(growing)
            cache.record(path, self.inputs())  # before the rename: an interruption here loses nothing
            growing.replace(path)
            inputs_file(growing).unlink(missing_ok=True)
        return path


class RunStep(Step):
    """The folder of a training run, which can be resumed."""

    @abstractmethod
    def train(self, folder: Path, *, resume: bool) -> None:
        """Run the training."""

    def obtain(self, cache: "StepCache") -> Path:
        """The run's folder."""
        path = cache.folder / self.name
        with cache.exclusive(self.name):
            resume = path.is_dir() and cache.has(path, self.inputs())
            if not resume:
                inputs_file(path).unlink(missing_ok=True)  # first: a partial folder must not look complete
                RunFolder(path).remove()
                cache.record(path, self.inputs())
            if not (path / "model").is_dir():
                cache.report(f"{self.name}: {'resuming' if resume else 'training'}")
                cache.computed.append(self.name)
                self.train(path, resume=resume)
        return path


class StepCache:
    """The results of one run, in one folder."""

    def __init__(self, folder: Path, *, report: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self.report = report
        self.computed: list[str] = []
        """The results that were computed in this run; the others were cached."""
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder} is a file: a run needs a folder")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
            raise OutputError(f"{folder} is not a folder of `tercet augment`: choose a new folder")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / MARK, {"created by": "tercet augment"})
            (folder / LOCKS).mkdir(exist_ok=True)

    def get(self, step: Step) -> Path:
        """The result of a step, computed if it is not cached."""
        return step.obtain(self)

    def exclusive(self, name: str) -> Any:
        """A block in which no other process computes the result ``name``; waits if one does."""
        lock = self.folder / LOCKS / name
        return exclusive(lock, lambda: self.report(f"{name}: waiting for another run that computes it"))

    def has(self, path: Path, inputs: Mapping[str, Any]) -> bool:
        """Whether the result at ``path`` was computed from these inputs."""
        file = inputs_file(path)
        if not path.exists() or not file.is_file():
            return False
        try:
            recorded: object = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:  # incomplete
            return False
        return recorded == as_json(inputs)

    def start(self, path: Path) -> None:
        """Announce that the result at ``path`` is being computed."""
        self.report(f"{path.name}: computing")
        self.computed.append(path.name)
        inputs_file(path).unlink(missing_ok=True)

    def record(self, path: Path, inputs: Mapping[str, Any]) -> None:
        """Store the inputs of the result at ``path``."""
        write_json(inputs_file(path), as_json(inputs))


def complete_lines(file: Path) -> int:
    """The number of lines of a growing file; an incomplete last line is removed."""
    count = end = 0
    with file.open("rb+") as opened:
        for line in opened:
            if not line.endswith(b"\n"):
                break
            count += 1
            end += len(line)
        opened.truncate(end)
    return count


def as_json(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as JSON reads them back: tuples become lists."""
    plain: dict[str, Any] = json.loads(json_text(inputs))
    return plain


def inputs_file(path: Path) -> Path:
    """The file with the inputs of the result at ``path``."""
    return path.with_name(f"{path.name}.from.json")
