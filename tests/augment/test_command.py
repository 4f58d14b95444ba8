"""The command ``tercet augment``."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.augment.conftest import WriteRecipe
from tests.cli.command import assert_fails, assert_refused, tercet

from tercet.augment.pipeline import Pipeline
from tercet.errors import InterruptedRunError

TABLES = """
[sampling]
samplers = ["bm25"]
top_k = 2

[students]
seeds = 2
"""


def test_the_command_writes_results_and_a_report(write_recipe: WriteRecipe, tmp_path: Path) -> None:
    out = tmp_path / "run"
    recipe = str(write_recipe(TABLES))
    arguments = ("augment", recipe, "--data", str(tmp_path), "-o", str(out), "--device", "cpu")
    done = tercet(*arguments)
    assert done.returncode == 0, done.stderr
    labels = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert labels == ["gold only", "bm25", "labeller (cross-encoder)", str(out)]
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    assert len(result["results"]["rows"][1]["metrics"]["spearman"]["seeds"]) == 2
    assert (out / "report.html").is_file()
    assert tercet(*arguments).stdout == done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--set", 'words.wordnet="nowhere"', "--set", 'words.changes=["synonyms"]'),
            "nowhere is not a WordNet folder",
        ),
        (("--data", "/no/where"), "there is no file /no/where/gold.jsonl"),
        (("--set", "sampling.top_k=0"), "top_k must be"),
        (("-o", f"{__file__}/run"), "test_command.py: Not a directory"),
        (("-o", __file__), "is a file: a run needs a folder"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], message: str, write_recipe: WriteRecipe, tmp_path: Path
) -> None:
    recipe = str(write_recipe(TABLES))
    done = tercet("augment", recipe, "--data", str(tmp_path), "-o", str(tmp_path / "run"), *arguments)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_unknown_precision_is_refused(write_recipe: WriteRecipe) -> None:
    result = tercet("augment", str(write_recipe(TABLES)), "--precision", "fp8")
    assert_refused(result, "'fp8' is not one of 'fp32', 'bf16', 'fp16'")


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    assert_fails(tercet("augment", str(tmp_path / "x.toml")), "x.toml does not exist")


def test_a_stopped_student_is_continued_by_the_same_command(
    write_recipe: WriteRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: Pipeline) -> None:
        raise InterruptedRunError("stopped at step 8 with a checkpoint: continue with --resume")

    monkeypatch.setattr(Pipeline, "run", stopped)
    done = tercet("augment", str(write_recipe(TABLES)), "--data", str(tmp_path), "-o", str(tmp_path / "run"))
    assert done.returncode == 130
    assert done.stderr == "stopped at step 8 with a checkpoint: run the same command again to continue\n"
