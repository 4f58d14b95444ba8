"""Recipes that say little: what they learn, and with which settings."""

from pathlib import Path
from typing import Any

import pytest

from tercet.errors import InputError
from tercet.files.structured import read_json
from tercet.settings.models import SCORER_CONFIGS
from tercet.settings.recipe import Recipe, make_recipe, read_recipe

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "src" / "tercet" / "weights"


def short(kind: str, reader: str = "answers", **parts: Any) -> Recipe:
    """The recipe of a model, a file and a reader."""
    data = {"train": {"files": "rows.jsonl", "reader": reader, **parts.pop("data", {})}}
    return make_recipe({"model": {"kind": kind, "source": "bi"}, "data": data, **parts}, name="short")


def test_a_short_poly_recipe_has_the_model_of_the_recipe_that_made_the_results() -> None:
    """R@1 was .233 with the settings of a short recipe and .287 with those of the recipe for Ubuntu."""
    long = read_recipe(ROOT / "recipes" / "poly-ubuntu.toml")
    assert short("poly").model.resolved() == long.model.resolved()
    config = short("poly").model.config()
    assert (config.codes, config.similarity, config.reduction) == (64, "cosine", "mean")
    assert (config.code_scale, config.candidate_scale) == (10, 10)


@pytest.mark.parametrize(
    ("kind", "reader", "objective"),
    [
        ("bi", "answers", "in_batch"),
        ("poly", "dialogues", "in_batch"),
        ("cross", "choices", "listwise"),
        ("bi", "pairs", "cosine"),
        ("cross", "pairs", "bce"),
        ("poly", "scored", "kl_divergence"),
        ("bi", "triplets", "in_batch"),
    ],
)
def test_the_objective_follows_from_the_model_and_the_reader(kind: str, reader: str, objective: str) -> None:
    assert short(kind, reader).objective.kind == objective


def test_labels_are_learnt_by_a_classifier() -> None:
    labels = {"labels": ["no", "yes"]}
    assert short("bi", "pairs", data=labels).objective.kind == "softmax"
    assert short("cross", "pairs", data=labels).objective.kind == "cross_entropy"


def test_a_packaged_model_as_the_source_says_its_kind() -> None:
    recipe = make_recipe(
        {"model": {"source": "cross"}, "data": {"train": {"files": "x.jsonl", "reader": "answers"}}}, name="t"
    )
    assert recipe.objective.kind == "listwise"


def test_an_objective_that_could_be_several_must_be_named() -> None:
    with pytest.raises(InputError, match=r"short, \[objective\]: the setting kind is missing"):
        short("poly", "pairs")


def test_rows_with_only_an_answer_get_negatives_for_listwise() -> None:
    assert short("cross").batches.negatives == 15
    assert short("cross", data={"columns": {"negatives": "wrong"}}).batches.negatives == 0
    assert short("cross", "choices").batches.negatives == 0
    assert short("bi").batches.negatives == 0
    assert short("cross", batches={"negatives": 3}).batches.negatives == 3


@pytest.mark.parametrize("kind", ["poly", "cross"])
def test_a_packaged_model_states_every_setting_of_its_config(kind: Any) -> None:
    """Else a changed default would change its scores."""
    stated = read_json(WEIGHTS / kind / "tercet.json")["base_model"]["settings"]
    assert stated.keys() == SCORER_CONFIGS[kind].__dataclass_fields__.keys()
