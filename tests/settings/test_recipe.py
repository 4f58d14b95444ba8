"""Recipes of ``tercet train``: errors name the file, the table and the setting."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.training.small_recipes import (
    RECIPES,
    FolderOf,
    tables,
)

from tercet.errors import InputError
from tercet.files.structured import read_toml
from tercet.settings.models import PoolingConfig
from tercet.settings.recipe import make_recipe, read_recipe


def test_a_recipe_names_one_teacher_or_several(tiny_folder: FolderOf) -> None:
    for given, named in (("bi", ("bi",)), (["a", "b"], ("a", "b")), ([], ())):
        recipe = make_recipe(tables(tiny_folder("bert"), teacher=given), name="test")
        assert recipe.teachers == named
        assert recipe.resolved()["teacher"] == (given or None)


def test_a_recipe_is_read_from_a_path_or_its_name() -> None:
    path = RECIPES / "bi-sample.toml"
    assert read_recipe(str(path)) == read_recipe(path)
    with pytest.raises(InputError, match="path must name a recipe file, got None"):
        read_recipe(None)  # type: ignore[arg-type]


def test_a_resolved_recipe_has_every_setting(tiny_folder: FolderOf) -> None:
    recipe = make_recipe(tables(tiny_folder("bert")), name="test")
    names = {field.name for field in fields(recipe)} - {"teachers"} | {"teacher"}
    assert recipe.resolved().keys() == names
    assert json.loads(json.dumps(recipe.resolved()))["training"]["schedule"] == "linear"  # a default


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"teacher": "bi", "teacher_lexical_weight": -1},
            "teacher_lexical_weight must be at least 0, got -1",
        ),
        ({"teacher": 3}, "test: teacher must name a model or a list of models, got 3"),
        ({"teacher": ["bi", "bi"]}, "test: a teacher is named twice: bi, bi"),
        ({"teacher": ["bi", " "]}, "test: teacher must name a model or a list of models"),
        ({"teacher_lexical_weight": 0.5}, "teacher_lexical_weight needs a teacher: name one"),
        (
            {"teacher": "bi", "teacher_lexical_weight": "many"},
            "teacher_lexical_weight must be a finite number, got str 'many'",
        ),
    ],
)
def test_invalid_teachers_are_refused(given: dict[str, Any], message: str, tiny_folder: FolderOf) -> None:
    with pytest.raises(InputError, match=message):
        make_recipe(tables(tiny_folder("bert"), **given), name="test")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.epochs=0", r"\[training\]: epochs must be at least 1"),
        ("training.epoch=3", r"\[training\]: unknown setting 'epoch'; known settings: epochs, learning_rate"),
        (
            "training.learning_rate=fast",
            r"\[training\]: learning_rate must be a finite number, got str",
        ),
        ("training.learning_rate=inf", r"\[training\]: learning_rate must be a finite number, got float inf"),
        ("training.epochs=true", r"\[training\]: epochs must be a whole number, got bool True"),
        ("training={bf16=true, fp16=true}", r"\[training\]: bf16 and fp16 exclude each other"),
        ("training.betas=[0.9]", r"\[training\]: betas must be two numbers"),
        ("batches.seed=abc", r"\[batches\]: seed must be a whole number, got str 'abc'"),
        ("model.source=2024-01-01", r"\[model\]: source must be a string, got date"),
        ("data.train.columns=[1]", r"columns must be a table, and each value .* string, got tuple"),
        ("data.train.files=3", r"\[data.train\]: files must be a list, and each item a string, got int 3"),
        ("after.training.epochs=1", r"after must name a recipe file; change its settings in that file"),
        (
            "model.codes=3",
            r"\[model\]: invalid settings of a bi-encoder \(.*'codes'\); known settings: towers",
        ),
        ("model.first_tokens=4", r"first_tokens = 4 has no effect without pooling = .*, got mean"),
        ("model.first_tokens=0", r"\[model\]: first_tokens must be at least 1, got 0"),
        ("model.kind=tri", r"\[model\]: kind must be one of model, bi, poly, cross"),
        ("data.train.files=[]", r"\[data.train\]: files must name at least one file"),
        ("data.valid.files=x", r"\[data\]: unknown setting 'valid'; known settings: train, dev, test"),
        ("objective.kind=magic", r"\[objective\]: kind must be one of softmax"),
        ("nonsense", r"an assignment must have the form table.setting=value, got 'nonsense'"),
        ("training=3", r"\[training\] must be a table, got 3"),
    ],
)
def test_an_error_in_a_recipe_names_the_setting(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_recipe(RECIPES / "bi-sample.toml", [change])


def test_a_file_that_is_not_a_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recipe .*missing\.toml does not exist"):
        read_recipe(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(InputError, match=r"recipe .*bad\.toml is not valid TOML"):
        read_recipe(tmp_path / "bad.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(InputError, match="has no training data"):
        read_recipe(tmp_path / "empty.toml")


def shipped() -> list[Path]:
    """The recipes of ``tercet train``."""
    files = sorted(RECIPES.rglob("*.toml"))
    return [file for file in files if "pretrain" not in file.stem and "student" not in read_toml(file)]


@pytest.mark.parametrize("file", shipped(), ids=lambda file: file.stem)
def test_every_recipe_of_tercet_train_parses(file: Path) -> None:
    assert read_recipe(file).about


def test_first_tokens_belongs_to_the_pooling_of_a_bi_encoder_and_to_the_settings_of_a_poly_encoder() -> None:
    bi = read_recipe(
        RECIPES / "bi-sample.toml", ['model.pooling=["mean_first", "max"]', "model.first_tokens=4"]
    )
    assert bi.model.pooling_config() == PoolingConfig(kinds=("mean_first", "max"), first_tokens=4)
    poly = read_recipe(RECIPES / "poly-sample.toml", ["model.reduction=mean_first", "model.first_tokens=4"])
    assert (poly.model.config().first_tokens, poly.model.first_tokens) == (4, 16)


def test_a_pooling_is_refused_by_models_without_one() -> None:
    with pytest.raises(InputError, match="pooling applies to new bi-encoders, and this is a poly-encoder"):
        read_recipe(RECIPES / "poly-sample.toml", ['model.pooling=["first"]'])


def test_circular_recipes_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(f'after = "{other}.toml"\n[data.train]\nfiles = "x"')
    with pytest.raises(InputError, match="after leads back to this recipe"):
        read_recipe(tmp_path / "a.toml")


def test_a_recipe_with_bom_and_crlf_parses(tmp_path: Path) -> None:
    text = (RECIPES / "bi-sample.toml").read_text().replace("\n", "\r\n")
    (tmp_path / "recipe.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_recipe(tmp_path / "recipe.toml") == read_recipe(RECIPES / "bi-sample.toml")


def test_adapters_cannot_be_combined_with_a_rescaled_layer(tiny_folder: FolderOf) -> None:
    table = tables(tiny_folder("bert"), adapter={"rank": 2}, training={"last_layer_std": 0.04})
    with pytest.raises(InputError, match="last_layer_std changes weights that adapters freeze"):
        make_recipe(table, name="test")


@pytest.mark.parametrize("kind", [[[]], {"a": 1}, 3])
def test_a_kind_of_model_that_is_not_a_string_is_an_error_that_names_the_table(
    kind: object, tiny_folder: FolderOf
) -> None:
    recipe = tables(tiny_folder("bert"))
    recipe["model"]["kind"] = kind
    with pytest.raises(InputError, match=r"test, \[model\]: kind must be a string, got"):
        make_recipe(recipe, name="test")
