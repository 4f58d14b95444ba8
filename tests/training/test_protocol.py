"""Parts left out in turn."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, tercet

from tercet.errors import InputError
from tercet.training.protocol import run_protocol
from tercet.training.recipe import read_recipe

FolderOf = Callable[[str], Path]


@pytest.fixture
def recipe(tmp_path: Path, tiny_folder: FolderOf) -> Path:
    """A small recipe on 24 pairs of three topics."""
    rows = [
        {"context": f"the {word} {n}", "candidate": f"a {word} {n % 4}", "score": n % 2, "topic": word}
        for word in ("cat", "dog", "house")
        for n in range(8)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    file = tmp_path / "recipe.toml"
    file.write_text(
        f'[model]\nkind = "bi"\nsource = "{tiny_folder("bert")}"\n'
        f'[data.train]\nfiles = "{tmp_path}/pairs.jsonl"\n'
        '[objective]\nkind = "cosine"\n[batches]\nexamples = 4\n[training]\nepochs = 1\n'
    )
    return file


def test_every_topic_is_measured_by_a_model_that_has_not_seen_it(recipe: Path, tmp_path: Path) -> None:
    table = run_protocol(read_recipe(recipe), tmp_path / "topics", group="topic", device="cpu")
    assert [row.label for row in table.rows] == ["untrained", "trained"]
    for part in sorted((tmp_path / "topics").glob("part-*")):
        train, test = (
            {line.split()[2] for line in (part / f"{name}.jsonl").read_text().splitlines()}
            for name in ("train", "test")
        )
        assert len(test) == 1
        assert not train & test
        assert len(train) == 2
    assert np.unique(table.rows[0].first.columns["group"]).tolist() == [0, 1, 2]
    assert table.rows[1].first.cases == 24


def test_a_second_call_does_not_train_again(recipe: Path, tmp_path: Path) -> None:
    once = run_protocol(read_recipe(recipe), tmp_path / "folds", folds=2, device="cpu")
    files = sorted((tmp_path / "folds").rglob("model.safetensors"))
    written = [file.stat().st_mtime_ns for file in files]
    again = run_protocol(read_recipe(recipe), tmp_path / "folds", folds=2, device="cpu")
    assert [file.stat().st_mtime_ns for file in files] == written
    assert again.rows[1].figures == once.rows[1].figures


def test_the_command_wants_a_column_or_folds(recipe: Path, tmp_path: Path) -> None:
    assert_fails(tercet("protocol", str(recipe)), "--group COLUMN or --folds N")
    assert_fails(tercet("protocol", str(recipe), "--folds", "99", "-o", str(tmp_path / "o")), "99 folds")
    told = tercet("protocol", str(recipe), "--folds", "2", "-o", str(tmp_path / "out"))
    assert "trained" in told.stdout
    assert json.loads((tmp_path / "out" / "protocol.json").read_text())["tasks"][0]["cases"] == 24


def test_runs_on_other_parts_are_not_taken_for_these(recipe: Path, tmp_path: Path) -> None:
    run_protocol(read_recipe(recipe), tmp_path / "runs", folds=2, device="cpu")
    with pytest.raises(InputError, match="other parts or other pairs"):
        run_protocol(read_recipe(recipe), tmp_path / "runs", group="topic", device="cpu")
