"""The study: runs of several machines add up, and rows are compared case by case."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tercet.files.structured import read_json
from tercet.settings.recipe import read_recipe

ROOT = Path(__file__).parents[2]
RESEARCH = ROOT / "research"
RECIPE = "recipes/bi-sample.toml"

sys.path.insert(0, str(RESEARCH))
results = import_module("results")
study_groups, study_rows, study_runs, study_tables = (
    import_module(f"study_{name}") for name in ("groups", "rows", "runs", "tables")
)

BI, POLY = study_rows.Row("bi", "bi-here"), study_rows.Row("poly", "poly-here", against=("bi",))


def run(
    folder: Path, row: Any, seed: int, ranks: list[int], *, finished: bool = True, changed: str = ""
) -> Path:
    path = folder / row.run(seed).name
    (path / "model" if finished else path).mkdir(parents=True)
    words = ["python", "train", RECIPE, "-o", str(path), "--seed", str(seed), "--resume"]
    recipe = read_recipe(ROOT / RECIPE).with_seed(seed)
    (path / "config.json").write_text(json.dumps(recipe.resolved() | {"about": recipe.about + changed}))
    environment = {"command": words, "gpus": [], "processors": 2}
    (path / "environment.json").write_text(json.dumps(environment))
    (path / "result.json").write_text(json.dumps({"ranks": ranks, "train": {"train_runtime": 60.4}}))
    return path


@pytest.fixture
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_runs, "STORE", tmp_path / "study.json")


@pytest.mark.usefixtures("empty_store")
def test_runs_of_two_days_add_up(tmp_path: Path) -> None:
    first, second = run(tmp_path, BI, 0, [1, 2, 20, 1]), run(tmp_path, BI, 1, [1, 1, 7, 1])
    for day in ([first], [second]):
        study_runs.store_runs(study_runs.finished_runs(day))
    row = study_runs.row_results([BI], study_runs.stored_runs())["bi"]
    assert row["each"] == [0.5, 0.75]
    assert row["R@1"]["value"] == 0.625
    assert row["R@5"]["value"] == 0.75
    assert row["MRR"]["value"] == pytest.approx((1 + 0.75 + (1 / 20 + 1 / 7) / 2 + 1) / 4)
    assert row["command"] == f"tercet train {RECIPE} --seed S"


def test_a_run_without_a_model_is_not_finished(tmp_path: Path) -> None:
    assert not study_runs.finished_runs([run(tmp_path, BI, 0, [1], finished=False)])


def test_a_run_with_other_settings_than_its_command_is_refused(tmp_path: Path) -> None:
    changed = run(tmp_path, BI, 0, [1], changed=" changed")
    with pytest.raises(SystemExit, match="differ from those of recipes/bi-sample"):
        study_runs.finished_runs([changed])


def test_seeds_of_different_commands_do_not_make_a_row(tmp_path: Path) -> None:
    runs = study_runs.finished_runs([run(tmp_path, BI, seed, [1, 1]) for seed in (0, 1)])
    runs["bi-here-1"]["command"] += " --set training.epochs=9"
    with pytest.raises(SystemExit, match="different commands"):
        study_runs.row_results([BI], runs)


def test_stored_results_come_from_the_recipes_as_they_are_today() -> None:
    study, tables = (read_json(RESEARCH / name) for name in ("study.json", "sbert_tables.json"))
    trained = [stored for stored in study.values() if stored["command"].startswith("tercet train")]
    assert trained
    for stored in (*trained, *(row for table in tables.values() for row in table.values())):
        recipe = stored["command"].split()[2]
        digest = study_runs.recipe_digest(ROOT / recipe)
        assert digest == stored["recipe"], f"{recipe} has changed: train it again"


@pytest.mark.usefixtures("empty_store")
def test_a_stored_run_is_replaced_only_on_request() -> None:
    old, new = ({"bi-here-0": {"ranks": ranks}} for ranks in ("old", "new"))
    study_runs.store_runs(old)
    study_runs.store_runs(new)
    assert study_runs.stored_runs() == old
    study_runs.store_runs(new, replace=True)
    assert study_runs.stored_runs() == new


def test_a_new_seed_must_have_the_settings_of_the_stored_ones() -> None:
    shared = ("training.bf16=true",)
    command = study_runs.shown_command(BI.command(0, shared)[1:])
    study_runs.check_same_command(BI, shared, {"bi-here-0": {"command": command}})
    with pytest.raises(SystemExit, match=r"were trained by tercet train .*bf16=true.*: use its --set"):
        study_runs.check_same_command(BI, (), {"bi-here-0": {"command": command}})


def test_seeds_of_a_row_have_one_command_though_each_has_its_own_teacher() -> None:
    row = study_rows.Row("taught", "taught-here", same_seed=('teacher="runs/study/cross-here-{seed}/model"',))
    first, second = (study_runs.shown_command(row.command(seed, ())[1:]) for seed in (0, 1))
    assert first == second
    assert "cross-here-S/model" in first
    assert 'teacher="runs/study/cross-here-1/model"' in row.command(1, ())


def test_rows_are_compared_with_existing_rows_and_have_distinct_names() -> None:
    rows = [row for part in study_rows.PARTS.values() for row in part()]
    names = [row.name for row in rows]
    assert len(set(names)) == len(names)
    assert {other for row in rows for other in row.against} <= set(names)


def test_a_second_training_has_a_folder_of_its_own_and_the_same_command() -> None:
    first, second = POLY, POLY._replace(again=True)
    assert (first.run(0).name, second.run(0).name) == ("poly-here-0", "poly-here-again-0")
    assert study_runs.shown_command(first.command(0, ())) == study_runs.shown_command(second.command(0, ()))


def test_students_and_teachers_are_trained_before_distillation() -> None:
    trained = {f"{folder}/model" for folder in study_rows.distillation_inputs((), range(2))}
    named = [setting for row in study_rows.distillation_rows() for setting in row.same_seed]
    for seed in range(2):
        assert {setting.format(seed=seed).split('"')[1] for setting in named} <= trained


def test_every_group_comparison_has_its_stored_runs() -> None:
    known = study_rows.rows_by_name()
    stored = read_json(RESEARCH / "study.json").keys()
    for comparison in study_groups.COMPARISONS:
        for name in (*comparison.ours, *comparison.theirs):
            assert {known[name].run(seed).name for seed in comparison.seeds} <= stored


def test_a_group_is_the_mean_of_its_runs(tmp_path: Path) -> None:
    again, known = POLY._replace(name="poly again", again=True), {"bi": BI, "poly": POLY}
    ranks = ((BI, [2, 2, 1, 1]), (POLY, [1, 1, 1, 1]), (again, [1, 1, 1, 2]))
    runs = study_runs.finished_runs([run(tmp_path, row, 0, values) for row, values in ranks])
    comparison = study_groups.Comparison("more?", ("poly", "poly again"), ("bi",), (0,))
    line = study_groups.result(comparison, known | {"poly again": again}, runs)
    assert line.startswith("87.5 and 50.0, +37.5 (")
    assert list(study_groups.repeated(again, POLY, runs)) == ["100.0 and 75.0 (25.0)"]


def test_the_table_of_codes_lists_the_seeds_of_a_row_that_has_fewer() -> None:
    three, two = (
        {"seeds": seeds, "R@1": {"value": 0.75}, "deviation": 0.01, "against": [], "machine": "here"}
        for seeds in ([0, 1, 2], [0, 2])
    )
    table = study_tables.codes_table({"codes learnt 1": three, "codes learnt 4": two})
    assert "over seeds 0, 1, 2, or" in table
    assert "| 75.0 ± 1.0 *81.9* |" in table
    assert "| 75.0 ± 1.0 (0, 2) *83.8* |" in table


def test_the_tables_of_sentence_similarity_on_the_pages_are_those_of_the_stored_results() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in results.PAGES)
    shown = {match["name"]: match["table"].strip() for match in results.TABLE.finditer(pages)}
    for name, table in results.similarity_tables().items():
        assert shown[name] == table, "write the tables again: python research/results.py --stored"


def test_every_row_of_a_set_is_in_its_table() -> None:
    rows = [row for part in study_tables.SET_PARTS for row in study_rows.PARTS[part]()]
    titled = {f"{name} {kind}" for name in study_tables.SETS for kind in study_tables.KINDS}
    assert {row.name for row in rows} <= titled


def test_rows_are_compared_on_the_seeds_that_both_have(tmp_path: Path) -> None:
    right, wrong = [1] * 40, [1] * 20 + [2] * 20
    runs = [run(tmp_path, BI, seed, wrong) for seed in (0, 1, 2)] + [run(tmp_path, POLY, 1, right)]
    (gap,) = study_runs.row_results([BI, POLY], study_runs.finished_runs(runs))["poly"]["against"]
    assert gap["seeds"] == [1]
    assert gap["value"] == 0.5
    assert gap["p"] < 0.01
