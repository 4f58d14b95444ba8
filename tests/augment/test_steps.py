"""A file is made once, and again when what it comes from has changed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tercet.augment.contrasts import contrasts
from tercet.augment.steps import Steps, whole_lines


def writes(text: str) -> "object":
    return lambda file: file.write_text(text)


def test_a_file_is_kept_while_its_origin_is_the_same(tmp_path: Path) -> None:
    for origin, text, expected in (
        ({"k": (1, 2)}, "one", "one"),
        ({"k": [1, 2]}, "two", "one"),
        ({"k": 3}, "two", "two"),
    ):
        steps = Steps(tmp_path / "run")
        file = steps.file("x.txt", origin, writes(text))
        assert file.read_text() == expected
        assert steps.made == (["x.txt"] if expected == text else [])


def test_what_another_run_is_making_is_waited_for(tmp_path: Path) -> None:
    begun, told = Event(), Event()

    def makes(file: Path) -> None:
        begun.set()
        told.wait(timeout=30)  # until the other one knows
        file.write_text("one")

    with ThreadPoolExecutor() as pool:
        first = pool.submit(Steps(tmp_path / "run").file, "x.txt", {}, makes)
        begun.wait(timeout=30)
        second = Steps(tmp_path / "run", say=lambda _: told.set())
        assert second.file("x.txt", {}, writes("two")).read_text() == "one"
        assert second.made == []
    assert first.result() == tmp_path / "run/x.txt"


def test_half_a_file_is_none(tmp_path: Path) -> None:
    steps = Steps(tmp_path / "run")

    def fails(file: Path) -> None:
        file.write_text("half")
        raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        steps.file("x.txt", {}, fails)
    assert not (tmp_path / "run/x.txt").exists()


def test_a_growing_file_goes_on_only_from_the_same_origin(tmp_path: Path) -> None:
    steps = Steps(tmp_path / "run")

    def dies(file: Path) -> None:
        file.write_text("one\ntw")
        raise KeyboardInterrupt

    def finishes(file: Path) -> None:
        assert whole_lines(file) == there
        with file.open("a") as out:
            out.write("more\n")

    for origin, there in (({"a": 1}, 1), ({"a": 2}, 0)):
        with pytest.raises(KeyboardInterrupt):
            steps.growing_file("x.txt", {"a": 1, "again": there}, dies)
        origin["again"] = 1
        expected = "one\nmore\n" if there else "more\n"
        assert steps.growing_file("x.txt", origin, finishes).read_text() == expected


def test_a_training_of_other_settings_begins_anew(tmp_path: Path) -> None:
    begun: list[bool] = []

    def dies(folder: Path, on: bool) -> None:
        begun.append(on)
        folder.mkdir(exist_ok=True)

    for origin in ({"a": 1}, {"a": 1}, {"a": 2}):
        Steps(tmp_path / "run").run("student", origin, dies)
    assert begun == [False, True, False]

    finished: list[bool] = []

    def finishes(folder: Path, on: bool) -> None:
        (folder / "model").mkdir(parents=True)
        finished.append(on)

    for origin in ({"a": 3}, {"a": 4}):
        run = Steps(tmp_path / "run").run("student", origin, finishes)
    assert finished == [False, False]
    assert Steps(tmp_path / "run").run("student", {"a": 4}, dies) == run
    assert len(begun) == 3


def test_a_kill_when_all_is_done_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def writes_lines(file: Path) -> None:
        with file.open("a") as out:
            out.write("" if whole_lines(file) else "one\n")

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", _killed_for("x.txt.growing", killed))
        with pytest.raises(KeyboardInterrupt):
            Steps(tmp_path / "run").growing_file("x.txt", {}, writes_lines)
    assert Steps(tmp_path / "run").growing_file("x.txt", {}, writes_lines).read_text() == "one\n"


def _killed_for(name: str, killed: Any) -> Any:
    replace = Path.replace
    return lambda self, target: killed(self, target) if self.name == name else replace(self, target)


def test_the_best_partner_stands_against_every_lesser_one() -> None:
    found = list(contrasts([("a", "b", 1.0), ("a", "c", 3.0), ("d", "a", 2.0), ("e", "f", 1.0)]))
    assert [(row["context"], row["candidates"], row["scores"]) for row in found] == [
        ("a", ["c", "b"], [3.0, 1.0]),
        ("a", ["c", "d"], [3.0, 2.0]),
    ]
