"""Every recipe of the repository parses, and says what it is about."""

from pathlib import Path

import pytest

from tercet.augment.checks import check_recipe
from tercet.files.structured import read_toml
from tercet.settings.augment import AugmentRecipe, read_augment_recipe
from tercet.settings.pretrain import PretrainRecipe, read_pretrain_recipe
from tercet.settings.recipe import Recipe, read_recipe

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "recipes", ROOT / "research" / "recipes")
FILES = [file for folder in FOLDERS for file in sorted(folder.rglob("*.toml"))]


def read_any(file: Path) -> Recipe | AugmentRecipe | PretrainRecipe:
    """The recipe of the command that the file belongs to."""
    if "pretrain" in file.stem:
        return read_pretrain_recipe(file)
    return read_augment_recipe(file) if "student" in read_toml(file) else read_recipe(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_recipe_file_parses(file: Path) -> None:
    recipe = read_any(file)
    assert recipe.about.endswith(".")
    if isinstance(recipe, AugmentRecipe):
        check_recipe(recipe)


def test_recipes_of_all_three_commands_are_found() -> None:
    assert {type(read_any(file)) for file in FILES} == {Recipe, AugmentRecipe, PretrainRecipe}
