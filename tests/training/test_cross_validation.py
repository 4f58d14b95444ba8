"""Cross-validation: every fold is evaluated by a model that was not trained on it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, tercet

from tercet.errors import InputError
from tercet.settings.recipe import read_recipe
from tercet.training.cross_validation import cross_validate

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
        '[objective]\nkind = "cosine"\n[batches]\nbatch_size = 4\n[training]\nepochs = 1\n'
    )
    return file


def test_every_topic_is_evaluated_by_a_model_that_was_not_trained_on_it(recipe: Path, tmp_path: Path) -> None:
    table = cross_validate(read_recipe(recipe), tmp_path / "topics", group="topic", device="cpu")
    assert [row.label for row in table.rows] == ["untrained", "trained"]
    folders = sorted((tmp_path / "topics").glob("fold-*"))
    assert len(folders) == 3
    for folder in folders:
        train, test = (
            {line.split()[2] for line in (folder / f"{name}.jsonl").read_text().splitlines()}
            for name in ("train", "test")
        )
        assert len(test) == 1
        assert not train & test
        assert len(train) == 2
    assert np.unique(table.rows[0].first.columns["group"]).tolist() == [0, 1, 2]
    assert table.rows[1].first.cases == 24


def test_a_second_call_reuses_finished_runs(recipe: Path, tmp_path: Path) -> None:
    first = cross_validate(read_recipe(recipe), tmp_path / "folds", folds=2, device="cpu")
    files = sorted((tmp_path / "folds").rglob("model.safetensors"))
    written = [file.stat().st_mtime_ns for file in files]
    second = cross_validate(read_recipe(recipe), tmp_path / "folds", folds=2, device="cpu")
    assert [file.stat().st_mtime_ns for file in files] == written
    assert second.rows[1].estimates == first.rows[1].estimates


def test_the_command_needs_a_group_column_or_folds(recipe: Path, tmp_path: Path) -> None:
    assert_fails(tercet("cross-validate", str(recipe)), "--group COLUMN or --folds N")
    command = ("cross-validate", str(recipe), "--folds")
    assert_fails(tercet(*command, "99", "-o", str(tmp_path / "other")), "folds must be from 2 to 24")
    result = tercet(*command, "2", "-o", str(tmp_path / "out"))
    assert "trained" in result.stdout
    written = json.loads((tmp_path / "out" / "cross_validation.json").read_text())
    assert written["tasks"][0]["cases"] == 24


def test_runs_on_other_folds_are_not_reused(recipe: Path, tmp_path: Path) -> None:
    cross_validate(read_recipe(recipe), tmp_path / "runs", folds=2, device="cpu")
    with pytest.raises(InputError, match="contains runs on other folds or pairs"):
        cross_validate(read_recipe(recipe), tmp_path / "runs", group="topic", device="cpu")
