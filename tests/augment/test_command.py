"""``tercet augment`` as users meet it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.augment.conftest import Recipe
from tests.cli.command import assert_fails, tercet

TABLES = """
[sampling]
samplers = ["bm25"]
top_k = 2

[learning]
seeds = 2
"""


def test_one_command_goes_from_gold_to_a_report(world: Recipe, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("augment", str(world(TABLES)), "--data", str(tmp_path), "-o", str(out), "--device", "cpu")
    done = tercet(*words)
    assert done.returncode == 0, done.stderr
    named = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert named == ["gold alone", "bm25", "cross-encoder, which labelled", str(out)]
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    assert len(result["results"]["rows"][1]["measures"]["spearman"]["seeds"]) == 2
    assert (out / "report.html").is_file()
    assert tercet(*words).stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--set", 'words.wordnet="nowhere"', "--set", 'words.changes=["synonyms"]'),
            "nowhere is no WordNet",
        ),
        (("--precision", "fp8"), "precision must be one of"),
        (("--data", "/no/where"), "there is no gold.jsonl under /no/where"),
        (("--set", "sampling.top_k=0"), "top_k must be"),
        (("-o", "/no/where/run"), "/no/where is not a folder"),
        (("-o", __file__), "is a file: a run is a folder"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: tuple[str, ...], message: str, world: Recipe, tmp_path: Path
) -> None:
    done = tercet("augment", str(world(TABLES)), "--data", str(tmp_path), "-o", str(tmp_path / "run"), *words)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_recipe_that_is_none_is_named(tmp_path: Path) -> None:
    assert_fails(tercet("augment", str(tmp_path / "x.toml")), "there is no recipe")
