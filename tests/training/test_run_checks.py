"""Data that does not suit the objective is refused before training, and errors name the row."""

from pathlib import Path
from typing import Any

import pytest
from tests.training.small_recipes import COSINE, PAIR_ROWS, FolderOf, run, tables, write_rows, write_toml

from tercet.errors import DataError, InputError
from tercet.settings.recipe import read_recipe
from tercet.training.run import run_recipe

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")


@pytest.mark.parametrize(
    ("change", "objective", "message"),
    [
        ({"score": 7}, COSINE, r"line 1: the score must be from 0 to 1, got 7: set min_score and max_score"),
        ({"score": None}, COSINE, r"line 1: column 'score' is empty: fill it"),
        ({"score": "?"}, COSINE, r"line 1: column 'score' must be a number, got '\?'"),
        ({"score": 3}, {"kind": "softmax"}, r"line 1: the label must be a whole number from 0 to 2, got 3"),
        (
            {"score": 0.5},
            {"kind": "softmax"},
            r"line 1: the label must be a whole number from 0 to 2, got 0.5",
        ),
        (
            {},
            {"kind": "in_batch"},
            r"line 1: the objective learns from answers, and this row has a score or label",
        ),
        (
            {},
            {"kind": "margin_mse"},
            r"line 1: distillation needs at least two candidates with a teacher's score each, got 1",
        ),
        ({}, {"kind": "listwise"}, r"listwise cannot train a bi-encoder: choose one of softmax, cosine"),
    ],
)
def test_a_row_that_does_not_suit_the_objective_is_named(
    change: dict[str, Any], objective: dict[str, Any], message: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [PAIR_ROWS[0] | change, *PAIR_ROWS[1:]])
    table = tables(tiny_folder("bert"), data={"train": {"files": file}}, objective=objective)
    with pytest.raises((DataError, InputError), match=message):
        run(table, tmp_path / "run")


@pytest.mark.parametrize("objective", [COSINE, {"kind": "softmax"}])
def test_data_with_a_single_score_or_label_is_refused(
    objective: dict[str, Any], tiny_folder: FolderOf, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [line | {"score": 1} for line in PAIR_ROWS])
    table = tables(tiny_folder("bert"), data={"train": {"files": file}}, objective=objective)
    with pytest.raises(
        DataError, match=r"all rows of the train data have the (score|label) 1: there is nothing"
    ):
        run(table, tmp_path / "run")


def test_training_rows_in_the_test_data_are_refused_or_dropped(tiny_folder: FolderOf, tmp_path: Path) -> None:
    train, test = (
        write_rows(tmp_path / "a.jsonl", PAIR_ROWS),
        write_rows(tmp_path / "b.jsonl", PAIR_ROWS[3:5]),
    )
    data = {"train": {"files": train}, "test": {"files": test}}
    table = tables(tiny_folder("bert"), data=data, objective=COSINE)
    with pytest.raises(DataError, match=r"2 of 40 training rows are in the test data too, .*line 4"):
        run(table, tmp_path / "run")
    data["train"]["drop_overlap"] = True  # type: ignore[assignment]
    result = run(table, tmp_path / "other")
    assert result["train"]["examples"] + result["dev"]["examples"] == 38


def test_the_test_data_of_a_later_recipe_is_not_trained_on(tiny_folder: FolderOf, tmp_path: Path) -> None:
    train, test = (
        write_rows(tmp_path / "a.jsonl", PAIR_ROWS),
        write_rows(tmp_path / "b.jsonl", PAIR_ROWS[3:5]),
    )
    first = tables(tiny_folder("bert"), data={"train": {"files": train}}, objective=COSINE)
    write_toml(tmp_path / "first.toml", first)
    data = {"train": {"files": train, "drop_overlap": True}, "test": {"files": test}}
    second = tables(tiny_folder("bert"), data=data, objective=COSINE, after="first.toml")
    del second["model"]
    recipe = read_recipe(write_toml(tmp_path / "second.toml", second))
    with pytest.raises(DataError, match="2 of 40 training rows are in the later test data too"):
        run_recipe(recipe, tmp_path / "run", device="cpu")


def test_a_batch_of_one_has_no_negatives(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a batch of 1 has none: set batch_size to at least 2"):
        run(tables(tiny_folder("bert"), batches={"batch_size": 1}), tmp_path / "run")


def test_listwise_needs_negatives(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(
        tiny_folder("bert"),
        model={"kind": "cross", "source": str(tiny_folder("bert"))},
        objective={"kind": "listwise"},
    )
    with pytest.raises(InputError, match="listwise needs negatives, and some rows have none"):
        run({**table, "batches": {"batch_size": 4, "negatives": 0}}, tmp_path / "run")
    with pytest.raises(InputError, match="cannot draw 500 negatives from 108 different answers"):
        run({**table, "batches": {"batch_size": 4, "negatives": 500}}, tmp_path / "other")


@pytest.mark.parametrize("kind", ["cosine", "softmax", "triplet"])
def test_objectives_of_scores_labels_and_triplets_refuse_random_negatives(
    kind: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    lines = [{"anchor": f"the {n}", "positive": f"a {n}", "negative": "dog"} for n in range(20)]
    data: dict[str, Any] = {"files": write_rows(tmp_path / "rows.jsonl", lines), "reader": "triplets"}
    if kind in ("cosine", "softmax"):
        data = {"files": write_rows(tmp_path / "rows.jsonl", PAIR_ROWS)}
    table = tables(
        tiny_folder("bert"),
        data={"train": data},
        objective={"kind": kind},
        batches={"batch_size": 4, "negatives": 2},
    )
    with pytest.raises(InputError, match=f"{kind} cannot use random negatives"):
        run(table, tmp_path / "run")


@pytest.mark.parametrize(
    ("batches", "data", "message"),
    [
        (
            {"batch_size": 8, "max_tokens": 20},
            {},
            "a batch of one row has no in-batch negatives: raise or remove",
        ),
        ({"batch_size": 8}, {"limit": 11}, "dev data of one row has no in-batch negatives: add rows"),
    ],
)
def test_a_batch_of_one_row_is_an_error_before_training(
    batches: dict[str, int], data: dict[str, int], message: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    train = {"files": "sample:faq.en", "reader": "answers", **data}
    with pytest.raises(InputError, match=message):
        run(tables(tiny_folder("bert"), batches=batches, data={"train": train}), tmp_path / "run")


def test_fp16_is_refused_on_a_cpu(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training\.fp16 needs a GPU: on a CPU use bf16"):
        run(tables(tiny_folder("bert"), training={"fp16": True}), tmp_path / "run")
