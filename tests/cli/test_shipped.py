"""Recipes and tasks that are installed with tercet, from any folder."""

from contextlib import chdir
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, tercet

from tercet.settings.shipped import shipped
from tercet.settings.tasks import is_task, read_task

ROOT = Path(__file__).parents[2]
BRIEF = ("--set", "data.train.limit=30", "--set", "training.epochs=1", "--set", "model.max_tokens=16")


def test_every_recipe_is_listed_with_its_description() -> None:
    listed = tercet("recipes")
    assert listed.returncode == 0
    for file in (ROOT / "recipes").glob("*.toml"):
        assert f"\n{file.stem} " in f"\n{listed.stdout}"
    assert "questions and their answers. Takes a minute. (train, sample data)" in listed.stdout


def test_a_recipe_and_a_task_are_shown_as_they_are() -> None:
    assert tercet("recipes", "show", "bi-sample").stdout == (ROOT / "recipes/bi-sample.toml").read_text()
    assert tercet("tasks", "show", "stsb").stdout == (ROOT / "tasks/stsb.toml").read_text()
    assert "similarity: stsb/test.jsonl.gz" in tercet("tasks").stdout


@pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")
def test_a_recipe_trains_by_its_name_in_any_folder(tmp_path: Path) -> None:
    with chdir(tmp_path):
        done = tercet("train", "bi-sample", *BRIEF)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "bi-sample" / "model").is_dir()


def test_an_unknown_name_shows_similar_ones() -> None:
    unknown = tercet("train", "bi-samle")
    assert unknown.returncode == 1
    assert "similar names are bi-sample" in unknown.stderr
    assert_fails(tercet("tasks", "show", "stsbb"), "similar names are stsb")


def test_a_task_is_named_with_its_prefix() -> None:
    assert is_task("task:stsb")
    assert not is_task("stsb")  # could be a model
    assert read_task("task:stsb") == read_task(str(ROOT / "tasks" / "stsb.toml"))
    assert set(shipped("tasks")) == {file.stem for file in (ROOT / "tasks").glob("*.toml")}
