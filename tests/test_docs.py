"""The recipes that the documentation shows are complete: they parse, and those on sample data run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tercet.augment.checks import check_recipe
from tercet.augment.pipeline import GOLD_ONLY, Pipeline
from tercet.settings.augment import read_augment_recipe
from tercet.settings.recipe import make_recipe
from tercet.training.run import run_recipe

ROOT = Path(__file__).parents[1]
TRAINING, AUGMENTATION = (
    re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.DOTALL)
    for name in ("training.md", "augmentation.md")
)

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")


@pytest.mark.parametrize("text", TRAINING)
def test_every_recipe_of_the_training_page_is_complete(text: str) -> None:
    make_recipe(tomllib.loads(text), name="docs/training.md")


@pytest.mark.parametrize("text", AUGMENTATION)
def test_every_recipe_of_the_augmentation_page_is_complete(text: str, tmp_path: Path) -> None:
    for file in (ROOT / "recipes").glob("*.toml"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "my.toml").write_text(text)
    check_recipe(read_augment_recipe(tmp_path / "my.toml"))


def test_the_first_recipe_trains(tiny_folder: Any, tmp_path: Path) -> None:
    table = tomllib.loads(TRAINING[0])
    table["model"] |= {"source": str(tiny_folder("bert")), "codes": 4}  # the tiny encoder reads few tokens
    table["training"]["epochs"] = 1
    result = run_recipe(make_recipe(table, name="docs/training.md"), tmp_path / "run", device="cpu")
    assert result["dev"]["mrr"] > 0


def test_the_first_augment_recipe_is_short_and_trains_students(tiny_folder: Any, tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="needs tercet[augment]")
    settings = [line for line in AUGMENTATION[0].splitlines() if line.strip()]
    assert len(settings) <= 10
    (tmp_path / "my.toml").write_text(AUGMENTATION[0])
    small = (f'model.source="{tiny_folder("bert")}"', "training.epochs=1")
    changes = [f"{part}.{change}" for part in ("labeller", "student") for change in small]
    recipe = read_augment_recipe(tmp_path / "my.toml", [*changes, "sampling.pairs=20", "students.seeds=1"])
    results = Pipeline(recipe, tmp_path / "run", device="cpu").run()
    assert list(results.students) == [GOLD_ONLY, "bm25"]
    assert (len(results.gold.test), len(results.gold.dev)) == (12, 10)  # a tenth of 120, and of the rest
