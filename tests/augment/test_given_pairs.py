"""Pairs that a recipe gives are labelled, as scores or as matches by a threshold."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.augment.conftest import FolderOf, WriteRecipe, make_pairs, write_rows

from tercet.augment.given_pairs import given_pairs
from tercet.augment.label_noise import LabelNoise, gold_matches
from tercet.augment.pipeline import GIVEN, GOLD_ONLY, Augmented, Pipeline
from tercet.augment.report import evaluate_students
from tercet.augment.silver import read_silver
from tercet.data.sample import pairs, questions
from tercet.errors import DataError, InputError
from tercet.settings.augment import PairsConfig, read_augment_recipe
from tercet.settings.shipped import shipped_path

PAIRS = """
[pairs]
files = "pairs.jsonl"
columns = ["left", "right"]

[students]
seeds = 1
"""
RENAMED = [{"left": row["context"], "right": row["candidate"], "label": 7} for row in make_pairs(40, seed=7)]


def run(recipe: Path, *changes: str) -> tuple[Augmented, list[str]]:
    pipeline = Pipeline(
        read_augment_recipe(recipe, changes), recipe.parent / "run", root=recipe.parent, device="cpu"
    )
    return pipeline.run(), pipeline.computed


@pytest.fixture
def recipe(write_recipe: WriteRecipe) -> Path:
    return write_recipe(PAIRS, rows={"pairs": RENAMED})


def test_given_pairs_are_labelled_and_a_student_learns_them(recipe: Path) -> None:
    results, _ = run(recipe)
    assert list(results.students) == [GOLD_ONLY, GIVEN]
    rows = list(read_silver(results.silver[GIVEN]))
    assert [(row.context, row.candidate) for row in rows] == [(row["left"], row["right"]) for row in RENAMED]
    assert len({row.score for row in rows}) > 2
    assert [row.parents for row in rows] == [(number, number) for number in range(40)]
    assert {row.sampler for row in rows} == {GIVEN}


def test_given_and_sampled_pairs_have_their_own_students(recipe: Path) -> None:
    recipe.write_text(recipe.read_text() + '[sampling]\nsamplers = ["random"]\npairs = 5\n')
    results, _ = run(recipe)
    assert list(results.students) == [GOLD_ONLY, GIVEN, "random"]


def test_a_second_run_computes_nothing_and_other_pairs_are_labelled_again(recipe: Path) -> None:
    run(recipe)
    assert run(recipe)[1] == []
    write_rows(recipe.parent / "pairs.jsonl", RENAMED[:30])  # type: ignore[arg-type]
    _, steps = run(recipe)
    assert steps == ["pairs-given.jsonl", "labelled-given.jsonl", "silver-given.jsonl", "student-given-0"]


def test_pairs_that_are_labelled_already_or_repeated_are_left_out(tmp_path: Path) -> None:
    rows = [("a", "b"), ("B", "A"), ("c", "d"), ("d", "c"), ("e", "f"), ("E ", "f")]
    file = write_rows(tmp_path / "p.jsonl", [{"context": left, "candidate": right} for left, right in rows])
    found = given_pairs(PairsConfig(files=(str(file),)), GIVEN, known={("c", "d"), ("d", "c")}, root=None)
    assert [(pair.context, pair.candidate) for pair in found] == [("a", "b"), ("e", "f")]
    with pytest.raises(DataError, match="all pairs are gold, dev or test pairs, or there is none"):
        given_pairs(
            PairsConfig(files=(str(file),)),
            GIVEN,
            known={("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "f")},
            root=None,
        )


def test_a_limit_takes_a_random_sample_that_depends_on_the_seed(tmp_path: Path) -> None:
    rows = [{"context": f"a {n}", "candidate": f"b {n}"} for n in range(50)]
    file = str(write_rows(tmp_path / "p.jsonl", rows))  # type: ignore[arg-type]
    samples = [
        given_pairs(PairsConfig(files=(file,), limit=5, seed=seed), GIVEN, known=set(), root=None)
        for seed in (0, 0, 1)
    ]
    assert len(samples[0]) == 5
    assert samples[0] == samples[1] != samples[2]


def test_a_pair_without_a_text_is_an_error_that_names_the_row(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "p.jsonl", [{"context": "a", "candidate": ""}])
    with pytest.raises(DataError, match=r"p\.jsonl, line 1: .*candidate"):
        given_pairs(PairsConfig(files=(str(file),)), GIVEN, known=set(), root=None)


def silver_scores(results: Augmented) -> list[float]:
    return [row.score for row in read_silver(results.silver[GIVEN])]


def test_a_fixed_threshold_binarizes_the_labels(recipe: Path) -> None:
    soft = silver_scores(run(recipe)[0])
    middle = float(np.median(soft))
    results, _ = run(recipe, 'labelling.labels="binary"', f"labelling.threshold={middle}")
    assert silver_scores(results) == [5.0 if score >= middle else 0.0 for score in soft]
    assert results.noise == LabelNoise(
        results.noise.mean_error,
        results.noise.correlation,
        middle,
        None,  # type: ignore[union-attr]
    )


def test_a_threshold_is_chosen_on_graded_dev_pairs_by_the_best_f1(recipe: Path) -> None:
    soft = silver_scores(run(recipe)[0])
    results, _ = run(recipe, 'labelling.labels="binary"', "labelling.match_from=3")
    noise = results.noise
    assert noise is not None
    assert noise.threshold is not None
    assert noise.wrong is not None
    assert silver_scores(results) == [5.0 if score >= noise.threshold else 0.0 for score in soft]


def test_matches_of_gold_data_worked_out_by_hand() -> None:
    graded = np.array([0.0, 3.0, 4.0, 5.0])
    assert gold_matches(graded, None) is None
    assert gold_matches(graded, 4.0).tolist() == [False, False, True, True]  # type: ignore[union-attr]
    assert gold_matches(np.array([2.0, 7.0]), None).tolist() == [False, True]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ['labelling.labels="binary"'],
            "set match_from to the lowest gold score of a match, or set threshold",
        ),
        (["labelling.threshold=2"], 'threshold has no effect on scores: set labels = "binary"'),
        (['labelling.labels="binary"', "labelling.threshold=6"], "threshold must be above 0 and at most 5"),
        (['labelling.labels="binary"', "labelling.match_from=0"], "match_from must be above 0 and at most 5"),
        (['pairs.columns=["left"]'], "columns must name the two columns of a pair, got left"),
        (["pairs.limit=0"], "limit must be at least 1"),
        (["pairs.reader=pairs"], "unknown setting 'reader'"),
    ],
)
def test_invalid_settings_are_refused_before_training(changes: list[str], message: str, recipe: Path) -> None:
    with pytest.raises(InputError, match=message):
        run(recipe, *changes)
    assert not list((recipe.parent / "run").glob("labeller*"))


def test_given_pairs_need_a_labeller(write_recipe: WriteRecipe) -> None:
    with pytest.raises(InputError, match="new pairs need a labeller, and a labeller needs pairs"):
        read_augment_recipe(write_recipe(PAIRS, labelled=False))


def sample_data(folder: Path) -> Path:
    """The files of STSb and Quora, made of the sample data: its pairs, and its questions with answers."""
    scored = [{"text_a": row.context, "text_b": row.candidate, "score": row.score} for row in pairs("en")]
    asked = questions("en")
    doubled = [
        {"text_a": row.context, "text_b": (row if n % 2 else asked[n - 1]).answer, "label": n % 2}
        for n, row in enumerate(asked)
    ]
    files: dict[str, Any] = {
        "stsb/train": scored[:80],
        "stsb/dev": scored[80:],
        "qqp/train_labelled": doubled[:60],
        "qqp/test": doubled[60:],
    }
    for name, rows in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_recipe_of_scenario_3_runs_on_data_of_its_shape(tmp_path: Path, tiny_folder: FolderOf) -> None:
    folder = tiny_folder("bert")
    changes = [
        f'labeller.model.source="{folder}"',
        f'student.model.source="{folder}"',
        "labelling.seeds=1",
        "labelling.ensemble=false",
        "students.seeds=1",
        "labeller.training.epochs=1",
        "student.training.epochs=1",
    ]
    recipe = read_augment_recipe(shipped_path("recipes", "augment-stsb-labels-qqp"), changes)
    results = Pipeline(recipe, tmp_path / "run", root=sample_data(tmp_path), device="cpu").run()
    assert list(results.students) == [GOLD_ONLY, GIVEN]
    assert len(silver_scores(results)) == 60
    assert set(silver_scores(results)) <= {0.0, 5.0}
    table = evaluate_students(results, device="cpu")
    assert list(table.rows[0].estimates) == ["average precision", "F1", "accuracy"]  # of matches, as in Quora
