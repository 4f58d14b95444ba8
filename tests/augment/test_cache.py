"""Cached steps: a result is computed once, and again if its inputs change."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tercet.augment.cache import FileStep, GrowingFileStep, RunStep, Step, StepCache, complete_lines
from tercet.errors import OutputError


@dataclass(frozen=True)
class WriteFile(FileStep):
    """A file with the given inputs, written by a function."""

    given: Mapping[str, Any]
    writer: Callable[[Path], object]
    name = "x.txt"

    def inputs(self) -> Mapping[str, Any]:
        return self.given

    def write(self, file: Path) -> None:
        self.writer(file)


@dataclass(frozen=True)
class AppendFile(GrowingFileStep):
    """A growing file with the given inputs, appended to by a function."""

    given: Mapping[str, Any]
    writer: Callable[[Path], object]
    name = "x.txt"

    def inputs(self) -> Mapping[str, Any]:
        return self.given

    def append(self, file: Path) -> None:
        self.writer(file)


@dataclass(frozen=True)
class TrainModel(RunStep):
    """A run with the given inputs, trained by a function."""

    given: Mapping[str, Any]
    trainer: Callable[[Path, bool], object]
    name = "student"

    def inputs(self) -> Mapping[str, Any]:
        return self.given

    def train(self, folder: Path, *, resume: bool) -> None:
        self.trainer(folder, resume)


def writes(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text)


def trains(folder: Path, resume: bool) -> None:
    (folder / "model").mkdir(parents=True)


def steps_with(inputs: Mapping[str, Any]) -> list[Step]:
    """One step of each kind."""
    return [WriteFile(inputs, writes("one")), AppendFile(inputs, writes("one\n")), TrainModel(inputs, trains)]


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["file", "growing file", "run"])
def test_a_step_is_computed_again_only_if_one_of_its_inputs_changes(kind: int, tmp_path: Path) -> None:
    inputs = {"rows": "3f2a", "settings": {"top_k": 5, "seed": 0}}
    changed = [
        {"rows": "9c41", "settings": {"top_k": 5, "seed": 0}},
        {"rows": "9c41", "settings": {"top_k": 3, "seed": 0}},
        {"rows": "9c41", "settings": {"top_k": 3, "seed": 0}, "labeller": "1d0e"},
    ]
    for given in (inputs, *changed):
        step = steps_with(given)[kind]
        for expected in ([step.name], []):
            cache = StepCache(tmp_path / "run")
            assert cache.get(step).exists()
            assert cache.computed == expected


def test_a_file_is_kept_while_its_inputs_are_equal(tmp_path: Path) -> None:
    for inputs, text, expected in (
        ({"k": (1, 2)}, "one", "one"),
        ({"k": [1, 2]}, "two", "one"),
        ({"k": (1, 2)}, "two", "one"),
        ({"k": 3}, "two", "two"),
    ):
        cache = StepCache(tmp_path / "run")
        assert cache.get(WriteFile(inputs, writes(text))).read_text() == expected
        assert cache.computed == (["x.txt"] if expected == text else [])


def test_a_run_waits_for_a_result_that_another_run_computes(tmp_path: Path) -> None:
    started, reported = Event(), Event()

    def writes_slowly(file: Path) -> None:
        started.set()
        reported.wait(timeout=30)  # until the other run waits
        file.write_text("one")

    with ThreadPoolExecutor() as pool:
        first = pool.submit(StepCache(tmp_path / "run").get, WriteFile({}, writes_slowly))
        started.wait(timeout=30)
        second = StepCache(tmp_path / "run", report=lambda _: reported.set())
        assert second.get(WriteFile({}, writes("two"))).read_text() == "one"
        assert second.computed == []
    assert first.result() == tmp_path / "run/x.txt"


def test_a_failed_step_leaves_no_file(tmp_path: Path) -> None:
    def fails(file: Path) -> None:
        file.write_text("half")
        raise ValueError("failed halfway")

    with pytest.raises(ValueError, match="failed halfway"):
        StepCache(tmp_path / "run").get(WriteFile({}, fails))
    assert not (tmp_path / "run/x.txt").exists()


@pytest.mark.parametrize(("inputs", "kept"), [({"a": 1}, ["one\n"]), ({"a": 2}, [])])
def test_a_growing_file_continues_only_with_the_same_inputs(
    inputs: dict[str, int], kept: list[str], tmp_path: Path
) -> None:
    cache = StepCache(tmp_path / "run")

    def is_killed(file: Path) -> None:
        file.write_text("one\ntw")
        raise KeyboardInterrupt

    def finishes(file: Path) -> None:
        assert complete_lines(file) == len(kept)
        with file.open("a") as out:
            out.write("more\n")

    with pytest.raises(KeyboardInterrupt):
        cache.get(AppendFile({"a": 1}, is_killed))
    assert cache.get(AppendFile(inputs, finishes)).read_text() == "".join([*kept, "more\n"])


def test_a_run_with_other_inputs_starts_from_scratch(tmp_path: Path) -> None:
    resumed: list[bool] = []

    def is_killed(folder: Path, resume: bool) -> None:
        resumed.append(resume)
        folder.mkdir(exist_ok=True)

    for inputs in ({"a": 1}, {"a": 1}, {"a": 2}):
        StepCache(tmp_path / "run").get(TrainModel(inputs, is_killed))
    assert resumed == [False, True, False]

    finished: list[bool] = []

    def finishes(folder: Path, resume: bool) -> None:
        trains(folder, resume)
        finished.append(resume)

    for inputs in ({"a": 3}, {"a": 4}):
        run = StepCache(tmp_path / "run").get(TrainModel(inputs, finishes))
    assert finished == [False, False]
    assert StepCache(tmp_path / "run").get(TrainModel({"a": 4}, is_killed)) == run
    assert len(resumed) == 3


def test_a_kill_before_the_last_rename_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def writes_once(file: Path) -> None:
        with file.open("a") as out:
            out.write("" if complete_lines(file) else "one\n")

    replace = Path.replace

    def is_killed(file: Path, target: Path) -> Path:
        if file.name == "x.txt.growing":
            raise KeyboardInterrupt
        return replace(file, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", is_killed)
        with pytest.raises(KeyboardInterrupt):
            StepCache(tmp_path / "run").get(AppendFile({}, writes_once))
    assert StepCache(tmp_path / "run").get(AppendFile({}, writes_once)).read_text() == "one\n"


def test_an_outdated_run_is_removed_only_if_nobody_put_other_files_into_it(tmp_path: Path) -> None:
    StepCache(tmp_path / "run").get(TrainModel({"a": 1}, trains))
    photos = tmp_path / "run" / "student" / "photos"
    photos.mkdir()
    (photos / "summer.jpg").touch()
    with pytest.raises(OutputError, match=r"summer.jpg was not written by tercet"):
        StepCache(tmp_path / "run").get(TrainModel({"a": 2}, trains))
    assert (photos / "summer.jpg").exists()


def test_an_outdated_run_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    StepCache(tmp_path / "run").get(TrainModel({"a": 1}, trains))
    (tmp_path / "run" / "student").rename(tmp_path / "elsewhere")
    (tmp_path / "run" / "student").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="student was not written by tercet"):
        StepCache(tmp_path / "run").get(TrainModel({"a": 2}, trains))
    assert (tmp_path / "elsewhere" / "model").is_dir()
