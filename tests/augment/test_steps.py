"""A file is made once, and again when what it comes from has changed."""

from pathlib import Path

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

    with pytest.raises(KeyboardInterrupt):
        steps.growing_file("x.txt", {"a": 1}, dies)
    there = 1
    assert steps.growing_file("x.txt", {"a": 1}, finishes).read_text() == "one\nmore\n"
    there = 0
    assert steps.growing_file("x.txt", {"a": 2}, finishes).read_text() == "more\n"


def test_a_training_of_other_settings_begins_anew(tmp_path: Path) -> None:
    begun: list[bool] = []

    def dies(folder: Path, on: bool) -> None:
        begun.append(on)
        folder.mkdir(exist_ok=True)

    for origin in ({"a": 1}, {"a": 1}, {"a": 2}):
        Steps(tmp_path / "run").run("student", origin, dies)
    assert begun == [False, True, False]


def test_the_best_partner_stands_against_every_lesser_one() -> None:
    found = list(contrasts([("a", "b", 1.0), ("a", "c", 3.0), ("d", "a", 2.0), ("e", "f", 1.0)]))
    assert [(row["context"], row["candidates"], row["scores"]) for row in found] == [
        ("a", ["c", "b"], [3.0, 1.0]),
        ("a", ["c", "d"], [3.0, 2.0]),
    ]
