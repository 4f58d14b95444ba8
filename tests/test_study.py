"""The figures of ``benchmarks/study.py``: runs of several machines add up, rows are tested case by case."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tercet.files import read_json
from tercet.training.recipe import read_recipe
from tercet.training.run import with_seed

ROOT = Path(__file__).parents[1]
RECIPE = "recipes/bi-sample.toml"

sys.path.insert(0, str(ROOT / "benchmarks"))
study_groups, study_kept, study_report, study_rows = (
    import_module(f"study_{name}") for name in ("groups", "kept", "report", "rows")
)

BI, POLY = study_rows.Row("bi", "bi-here"), study_rows.Row("poly", "poly-here", against=("bi",))


def run(folder: Path, row: Any, seed: int, places: list[int], *, done: bool = True, said: str = "") -> Path:
    path = folder / row.run(seed).name
    (path / "model" if done else path).mkdir(parents=True)
    words = ["python", "train", RECIPE, "-o", str(path), "--seed", str(seed), "--resume"]
    recipe = with_seed(read_recipe(ROOT / RECIPE), seed)
    (path / "config.json").write_text(json.dumps(recipe.resolved() | {"about": recipe.about + said}))
    environment = {"command": words, "gpus": [], "processors": 2}
    (path / "environment.json").write_text(json.dumps(environment))
    (path / "result.json").write_text(json.dumps({"places": places, "train": {"train_runtime": 60.4}}))
    return path


@pytest.fixture(autouse=True)
def kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_kept, "KEPT", tmp_path / "study.json")


def test_runs_of_two_days_add_up(tmp_path: Path) -> None:
    first, second = run(tmp_path, BI, 0, [1, 2, 20, 1]), run(tmp_path, BI, 1, [1, 1, 7, 1])
    for day in ([first], [second]):
        study_kept.keep(study_kept.finished_runs(day))
    row = study_kept.figures([BI], study_kept.kept_runs())["bi"]
    assert row["each"] == [0.5, 0.75]
    assert row["R@1"]["value"] == 0.625
    assert row["R@5"]["value"] == 0.75
    assert row["MRR"]["value"] == pytest.approx((1 + 0.75 + (1 / 20 + 1 / 7) / 2 + 1) / 4)
    assert row["command"] == f"tercet train {RECIPE} --seed S"


def test_a_run_without_a_model_is_not_done(tmp_path: Path) -> None:
    assert not study_kept.finished_runs([run(tmp_path, BI, 0, [1], done=False)])


def test_a_run_with_other_settings_than_its_command_is_refused(tmp_path: Path) -> None:
    changed = run(tmp_path, BI, 0, [1], said=" changed")
    with pytest.raises(SystemExit, match="other settings than recipes/bi-sample"):
        study_kept.finished_runs([changed])


def test_seeds_of_different_commands_are_no_row(tmp_path: Path) -> None:
    runs = study_kept.finished_runs([run(tmp_path, BI, seed, [1, 1]) for seed in (0, 1)])
    runs["bi-here-1"]["command"] += " --set training.epochs=9"
    with pytest.raises(SystemExit, match="different commands"):
        study_kept.figures([BI], runs)


def test_what_is_kept_was_trained_with_the_recipes_as_they_are() -> None:
    study, tables = (read_json(ROOT / "benchmarks" / name) for name in ("study.json", "sbert_tables.json"))
    trained = [run for run in study.values() if run["command"].startswith("tercet train")]
    assert trained
    for each in (*trained, *(row for table in tables.values() for row in table.values())):
        recipe = each["command"].split()[2]
        assert study_kept.recipe_digest(ROOT / recipe) == each["recipe"], (
            f"{recipe} has changed: train it again"
        )


def test_a_kept_run_is_replaced_only_when_it_was_to_be_trained_again(tmp_path: Path) -> None:
    old, new = ({"bi-here-0": {"places": places}} for places in ("old", "new"))
    study_kept.keep(old)
    study_kept.keep(new)
    assert study_kept.kept_runs() == old
    study_kept.keep(new, again=True)
    assert study_kept.kept_runs() == new


def test_a_seed_is_not_trained_with_other_settings_than_those_before(tmp_path: Path) -> None:
    shared = ("training.bf16=true",)
    command = study_kept.shown_command(BI.command(0, shared)[1:])
    study_kept.check_alike(BI, shared, {"bi-here-0": {"command": command}})
    with pytest.raises(SystemExit, match=r"was trained by tercet train .*bf16=true.*: take its --set"):
        study_kept.check_alike(BI, (), {"bi-here-0": {"command": command}})


def test_seeds_of_a_row_have_one_command_though_each_has_its_own_teacher() -> None:
    row = study_rows.Row("taught", "taught-here", same_seed=('teacher="runs/study/cross-here-{seed}/model"',))
    first, second = (study_kept.shown_command(row.command(seed, ())[1:]) for seed in (0, 1))
    assert first == second
    assert "cross-here-S/model" in first
    assert 'teacher="runs/study/cross-here-1/model"' in row.command(1, ())


def test_rows_are_tested_against_rows_that_there_are_and_no_two_share_a_name() -> None:
    every = [row for part in study_rows.PARTS.values() for row in part()]
    names = [row.name for row in every]
    assert len(set(names)) == len(names)
    assert {other for row in every for other in row.against} <= set(names)


def test_a_second_training_has_a_folder_of_its_own_and_the_same_command() -> None:
    first, second = POLY, POLY._replace(again=True)
    assert (first.run(0).name, second.run(0).name) == ("poly-here-0", "poly-here-again-0")
    assert study_kept.shown_command(first.command(0, ())) == study_kept.shown_command(second.command(0, ()))


def test_pupils_and_teachers_are_trained_before_they_are_named() -> None:
    made = {f"{run}/model" for run in study_rows.teachings((), range(2))}
    named = [setting for row in study_rows.distillation_rows() for setting in row.same_seed]
    for seed in range(2):
        assert {setting.format(seed=seed).split('"')[1] for setting in named} <= made


def test_what_groups_are_asked_can_be_answered_from_what_is_kept() -> None:
    known = study_rows.rows_by_name()
    there = read_json(ROOT / "benchmarks" / "study.json").keys()
    for asked in study_groups.QUESTIONS:
        for name in (*asked.ours, *asked.theirs):
            assert {known[name].run(seed).name for seed in asked.seeds} <= there


def test_a_group_is_the_mean_of_its_runs(tmp_path: Path) -> None:
    again, known = POLY._replace(name="poly again", again=True), {"bi": BI, "poly": POLY}
    made = ((BI, [2, 2, 1, 1]), (POLY, [1, 1, 1, 1]), (again, [1, 1, 1, 2]))
    runs = study_kept.finished_runs([run(tmp_path, row, 0, places) for row, places in made])
    question = study_groups.Question("more?", ("poly", "poly again"), ("bi",), (0,))
    said = study_groups.answer(question, known | {"poly again": again}, runs)
    assert said.startswith("87.5 and 50.0, +37.5 (")
    assert list(study_groups.repeated(again, POLY, runs)) == ["100.0 and 75.0 (25.0)"]


def test_a_table_of_codes_names_the_seeds_of_a_row_that_has_fewer() -> None:
    one, four = (
        {"seeds": seeds, "R@1": {"value": 0.75}, "deviation": 0.01, "against": [], "machine": "here"}
        for seeds in ([0, 1, 2], [0, 2])
    )
    table = study_report.code_section({"codes learnt 1": one, "codes learnt 4": four})
    assert "over seeds 0, 1, 2, or" in table
    assert "| 75.0 ± 1.0 *81.9* |" in table
    assert "| 75.0 ± 1.0 (0, 2) *83.8* |" in table


def test_the_page_of_results_has_the_texts_and_tables_of_today() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    tables = read_json(ROOT / "benchmarks" / "sbert_tables.json")
    findings = (ROOT / "benchmarks" / "findings.md").read_text(encoding="utf-8")
    for part in (findings, study_report.sbert_section(tables)):
        assert part.strip() in page, "make results.md anew: python benchmarks/results.py --kept"


def test_every_row_about_a_set_stands_in_its_table() -> None:
    rows = [row for part in study_report.IN_MAIN for row in study_rows.PARTS[part]()]
    titled = {f"{each} {kind}" for each in study_report.SETS for kind in study_report.KINDS}
    assert {row.name for row in rows} <= titled


def test_rows_are_tested_on_the_seeds_that_both_have(tmp_path: Path) -> None:
    right, wrong = [1] * 40, [1] * 20 + [2] * 20
    runs = [run(tmp_path, BI, seed, wrong) for seed in (0, 1, 2)] + [run(tmp_path, POLY, 1, right)]
    (row,) = study_kept.figures([BI, POLY], study_kept.finished_runs(runs))["poly"]["against"]
    assert row["seeds"] == [1]
    assert row["value"] == 0.5
    assert row["p"] < 0.01
