"""Runs: from a recipe to a folder with everything in it, resumable, and clear about what is wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.config import PolyConfig
from tercet.errors import DataError, InputError, OutputError
from tercet.records import Lesson
from tercet.training.curves import _panels
from tercet.training.lesson_sets import LessonSets, both_ways, read_sets
from tercet.training.optimisers import set_dropout
from tercet.training.recipe import make_recipe, read_recipe
from tercet.training.run import run_recipe, with_seed
from tercet.training.run_folder import RunFolder, Teller
from tercet.training.settings import ObjectiveConfig
from tercet.training.teacher import taught, with_scores
from tercet.training.trainer import last_checkpoint
from tercet.training.word_shares import WordShares

FolderOf = Callable[[str], Path]

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")

ROOT = Path(__file__).parent.parent.parent
RECIPES = ROOT / "recipes"


def tables(backbone: Path, **parts: Any) -> dict[str, Any]:
    """A small recipe: a tiny bi-encoder on the sample questions."""
    usual = {
        "model": {"kind": "bi", "source": str(backbone)},
        "data": {"train": {"files": "sample:faq.en", "reader": "answers"}},
        "objective": {"kind": "in_batch", "score_scale": 20},
        "batches": {"examples": 16},
        "training": {"epochs": 2, "learning_rate": 1e-3},
    }
    return {**usual, **parts}


def run(table: dict[str, Any], folder: Path, **options: Any) -> dict[str, Any]:
    return run_recipe(make_recipe(table, name="test"), folder, device="cpu", **options)


def write_toml(path: Path, table: dict[str, Any]) -> Path:
    lines: list[str] = []

    def put(name: str, content: dict[str, Any]) -> None:
        lines.extend([f"[{name}]"] if name else [])
        inner = {key: value for key, value in content.items() if isinstance(value, dict)}
        lines.extend(f"{key} = {json.dumps(value)}" for key, value in content.items() if key not in inner)
        for key, value in inner.items():
            put(f"{name}.{key}".lstrip("."), value)

    put("", table)
    path.write_text("\n".join(lines))
    return path


def rows(path: Path, content: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return str(path)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(tercet.load(folder, device="cpu").named_parameters())


def assert_same_model(left: Path, right: Path) -> None:
    ours, theirs = weights(left), weights(right)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_run_leaves_everything_in_its_folder(tiny_folder: FolderOf, tmp_path: Path) -> None:
    result = run(tables(tiny_folder("bert")), tmp_path / "run")
    folder = tmp_path / "run"
    assert {"recall_at_1", "mrr", "lessons"} == result["dev"].keys()
    assert json.loads((folder / "result.json").read_text()) == result
    assert json.loads((folder / "config.json").read_text())["training"]["schedule"] == "linear"  # a default
    assert json.loads((folder / "environment.json").read_text())["packages"]["torch"] == torch.__version__
    assert json.loads((folder / "data.json").read_text())["train"]["lessons"] == 108
    logged = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert sum("eval_recall_at_1" in row for row in logged) == 4
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert tercet.load(folder / "model").fingerprint == result["fingerprint"]


def test_the_place_of_every_right_candidate_is_kept(tiny_folder: FolderOf, tmp_path: Path) -> None:
    """So that two runs can be compared case by case."""
    choices = [
        {
            "context": f"question {number}",
            "candidates": ["yes", "no", f"answer {number}"],
            "label": number % 3,
        }
        for number in range(9)
    ]
    test = {"files": rows(tmp_path / "test.jsonl", choices), "reader": "choices"}
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    result = run({**table, "data": {**table["data"], "test": test}}, tmp_path / "run")
    places = np.array(result["places"])
    assert places.shape == (9,)
    assert set(places.tolist()) <= {1, 2, 3}
    assert result["test"]["recall_at_1"] == np.mean(places == 1)
    assert result["test"]["mrr"] == pytest.approx(np.mean(1 / places))


def test_a_finished_run_is_not_run_again(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    folder = tmp_path / "with" / "parents" / "run"
    first = run(table, folder)
    before = (folder / "metrics.jsonl").stat().st_mtime_ns
    assert run(table, folder, resume=True) == first
    assert (folder / "metrics.jsonl").stat().st_mtime_ns == before
    with pytest.raises(OutputError, match="exists: choose another folder, or go on with it"):
        run(table, folder)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_has_one_run_at_a_time(tiny_folder: FolderOf, tmp_path: Path, *, resume: bool) -> None:
    """Two would write over each other's checkpoints; a run that has only just begun counts too."""
    table, begun = tables(tiny_folder("bert"), training={"epochs": 1}), tmp_path / "run"
    folder = RunFolder(begun)
    with folder.open(make_recipe(table, name="test").resolved(), resume=False):
        for further in (folder.path, folder.checkpoints):
            further.mkdir(exist_ok=True)
            with pytest.raises(OutputError, match="is being trained by another process: wait for it"):
                run(table, begun, resume=resume)
        assert (begun / "config.json").is_file()
    folder.checkpoints.rmdir()
    run(table, begun, resume=resume)


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_was_killed_at_once_can_be_begun_again(
    tiny_folder: FolderOf, tmp_path: Path, *, resume: bool
) -> None:
    """With its lock and half a file in its folder, and nothing else."""
    begun = tmp_path / "run"
    begun.mkdir()
    (begun / ".lock").touch()
    (begun / ".0123456789ab.partial").touch()
    run(tables(tiny_folder("bert"), training={"epochs": 1}), begun, resume=resume)


@pytest.mark.parametrize("resume", [False, True])
def test_nothing_is_put_into_the_folder_of_somebody_else(
    tiny_folder: FolderOf, tmp_path: Path, *, resume: bool
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "first.txt").touch()
    with pytest.raises(OutputError, match="choose another folder"):
        run(tables(tiny_folder("bert")), tmp_path / "letters", resume=resume)
    assert [file.name for file in (tmp_path / "letters").iterdir()] == ["first.txt"]


def test_other_settings_do_not_go_on_with_a_run(tiny_folder: FolderOf, tmp_path: Path) -> None:
    run(tables(tiny_folder("bert"), training={"epochs": 1}), tmp_path / "run")
    with pytest.raises(InputError, match=r"begun with other settings \(batches.examples, training.epochs, "):
        run(tables(tiny_folder("bert"), batches={"examples": 8}), tmp_path / "run", resume=True)


def test_a_recipe_after_another_begins_with_its_model(tiny_folder: FolderOf, tmp_path: Path) -> None:
    write_toml(tmp_path / "first.toml", tables(tiny_folder("bert"), training={"epochs": 1}))
    second = tables(tiny_folder("bert"), training={"epochs": 1, "learning_rate": 0.0}, after="first.toml")
    del second["model"]
    recipe = read_recipe(write_toml(tmp_path / "second.toml", second))
    run_recipe(recipe, tmp_path / "run", device="cpu")
    assert_same_model(tmp_path / "run" / "model", tmp_path / "run" / "before" / "model")


def test_a_recipe_after_another_may_give_its_encoder_a_new_kind(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    write_toml(tmp_path / "first.toml", tables(tiny_folder("bert"), training={"epochs": 1}))
    data = {"train": {"files": "sample:pairs.en"}}
    second = tables(
        tiny_folder("bert"),
        model={"kind": "cross"},
        data=data,
        objective={"kind": "regression", "highest": 5},
        training={"epochs": 1, "learning_rate": 0.0},
        after="first.toml",
    )
    run_recipe(read_recipe(write_toml(tmp_path / "second.toml", second)), tmp_path / "run", device="cpu")
    trained = weights(tmp_path / "run" / "before" / "model")[
        "context_tower.encoder.transformer.pooler.dense.bias"
    ]
    used = weights(tmp_path / "run" / "model")["encoder.transformer.pooler.dense.bias"]
    assert torch.equal(trained, used)


def test_a_teacher_gives_the_targets(tiny_folder: FolderOf, tmp_path: Path) -> None:
    negatives = [
        {"context": f"the cat {n}", "answer": "a dog ran", "negatives": ["old house", "bread and water"]}
        for n in "abcdefgh"
    ]
    file = rows(tmp_path / "rows.jsonl", negatives)
    data = {"train": {"files": file, "reader": "answers", "columns": {"negatives": "negatives"}}}
    teacher = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu").save(tmp_path / "teacher")
    table = tables(
        tiny_folder("bert"),
        model={"kind": "poly", "source": str(tiny_folder("bert")), "codes": 3},
        teacher=str(teacher),
        data=data
        | {
            "dev": data["train"]
            | {
                "files": rows(
                    tmp_path / "dev.jsonl",
                    [{"context": "a river", "answer": "new river", "negatives": ["never", "old tree"]}],
                )
            }
        },
        objective={"kind": "margin_mse"},
        batches={"examples": 4},
    )
    result = run(table, tmp_path / "run")
    assert result["dev"]["lessons"] == 1


def test_both_entropies_are_drawn_together() -> None:
    rows = [
        {"step": 1, "loss": 2.0},
        {"step": 1, "eval_mrr": 0.5, "eval_a_entropy": 0.1, "eval_b_entropy": 0.2},
    ]
    panels = _panels(rows)
    assert panels.keys() == {"loss", "mrr", "entropy"}
    assert panels["entropy"] == {"a": [(1, 0.1)], "b": [(1, 0.2)]}


def test_the_attentions_of_a_poly_encoder_are_watched_and_do_not_choose(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    model = {"kind": "poly", "source": str(tiny_folder("bert")), "codes": 3}
    result = run(tables(tiny_folder("bert"), model=model), tmp_path / "run")
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for name in ("token_entropy", "code_entropy"):
        assert 0 < result["dev"][name] <= 1
        assert 0 < result["untrained"][name] <= 1
        assert sum(f"eval_{name}" in row for row in logged) == 4
    table = tables(tiny_folder("bert"), model=model, training={"best_by": "code_entropy"})
    with pytest.raises(InputError, match=r"what is measured here is loss, recall_at_1, mrr$"):
        run(table, tmp_path / "other")


@pytest.mark.parametrize("reader", ["choices", "answers"])
def test_what_a_pupil_is_tested_on_needs_no_teacher(
    tiny_folder: FolderOf, tmp_path: Path, reader: str
) -> None:
    row = {"context": "a river", "candidates": ["never", "new river"], "label": 1, "answer": "new river"}
    test = {"files": rows(tmp_path / "test.jsonl", [row]), "reader": reader}
    table = tables(
        tiny_folder("bert"),
        teacher=str(tiny_folder("bert")),
        objective={"kind": "distribution"},
        batches={"examples": 16, "negatives": 3},
        training={"epochs": 1},
    )
    result = run({**table, "data": {**table["data"], "test": test}}, tmp_path / "run")
    assert result["test"]["lessons"] == 1
    assert len(result["places"]) == 1


def test_a_teacher_scores_each_candidate_of_a_row_for_itself(tiny_folder: FolderOf) -> None:
    train = [Lesson("a cat", ("a dog ran", "old house")), Lesson("a river", ("the sea",))]
    sets = LessonSets(train, dev=[Lesson("a tree", ("bread", "water"))], test=[])
    found = taught(sets, [str(tiny_folder("bert"))], ObjectiveConfig(kind="cosine", lowest=-1), device="cpu")
    pairs = [(lesson.context, *lesson.candidates) for lesson in found.train]
    assert pairs == [("a cat", "a dog ran"), ("a cat", "old house"), ("a river", "the sea")]
    assert [len(lesson.targets) for lesson in (*found.train, *found.dev)] == [1] * 5


def test_pairs_are_learnt_both_ways(tiny_folder: FolderOf, tmp_path: Path) -> None:
    content = [{"context": f"{n} a", "candidate": f"b {n}", "score": 0.5} for n in "cde"]
    part = {"files": rows(tmp_path / "train.jsonl", content), "both_ways": True}
    dev = {"files": rows(tmp_path / "dev.jsonl", [{"context": "x", "candidate": "y", "score": 1}])}
    table = tables(tiny_folder("bert"), data={"train": part, "dev": dev}, objective={"kind": "cosine"})
    found = read_sets(make_recipe(table, name="test"), None)
    pairs = [(lesson.context, *lesson.candidates) for lesson in found.train]
    assert pairs[:3] == [("c a", "b c"), ("d a", "b d"), ("e a", "b e")]
    assert pairs[3:] == [(second, first) for first, second in pairs[:3]]
    assert len(found.dev) == 1
    with pytest.raises(DataError, match="only a pair of two texts can be learnt both ways"):
        both_ways([Lesson(("a", "b"), ("c",))])


def test_dropout_is_set_everywhere(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    set_dropout(scorer, 0.3)
    shares = {module.p for module in scorer.modules() if isinstance(module, torch.nn.Dropout)}
    assert shares == {0.3}
    run(tables(tiny_folder("bert"), training={"epochs": 1, "dropout": 0.0}), tmp_path / "run")
    with pytest.raises(InputError, match="dropout must be at least 0 and below 1, got 1"):
        make_recipe(tables(tiny_folder("bert"), training={"dropout": 1}), name="test")


def test_a_teacher_scores_answers_of_others_too(tiny_folder: FolderOf) -> None:
    texts = ["the cat", "a dog ran", "old house", "bread", "water"]
    train = [Lesson("a river", (text,)) for text in texts]
    objective = ObjectiveConfig(kind="margin_mse")
    sets = LessonSets(train, dev=train, test=[])
    found = taught(sets, [str(tiny_folder("bert"))], objective, negatives=3, device="cpu")
    for lesson, before in zip(found.train, train, strict=True):
        assert lesson.candidates[0] == before.candidates[0]
        assert len(set(lesson.candidates)) == len(lesson.targets) == 4
    choices = LessonSets(train, dev=[Lesson("a river", ("water", "bread"))], test=[])
    looked_at = taught(choices, [str(tiny_folder("bert"))], objective, negatives=3, device="cpu").dev
    assert [lesson.candidates for lesson in looked_at] == [("water", "bread")]
    assert taught(sets, [str(tiny_folder("bert"))], objective, negatives=3, device="cpu") == found
    with pytest.raises(InputError, match="5 negatives cannot be drawn from 5 different answers"):
        taught(sets, [str(tiny_folder("bert"))], objective, negatives=5, device="cpu")


def test_a_run_that_failed_before_training_can_be_begun_again(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1, "best_by": "luck"})
    with pytest.raises(InputError, match="best_by is 'luck'"):
        run(table, tmp_path / "run")
    run(tables(tiny_folder("bert"), training={"epochs": 1}), tmp_path / "run")


def test_a_teachers_scores_stay_between_the_limits(tiny: tercet.BiEncoder) -> None:
    lessons = [Lesson(SENTENCES[0], tuple(SENTENCES)), Lesson(SENTENCES[1], (SENTENCES[1],))]
    found = with_scores(tiny.score_pairs, lessons, (0.2, 0.7))
    assert [len(lesson.targets) for lesson in found] == [len(SENTENCES), 1]
    wanted = tiny.score(SENTENCES[0], SENTENCES).clip(0.2, 0.7)
    assert found[0].targets == pytest.approx(wanted, abs=1e-6)
    assert found[1].targets == pytest.approx((0.7,))


def test_of_several_teachers_the_mean_is_learnt(tiny_folder: FolderOf) -> None:
    lessons = [Lesson("the cat", ("the dog", "a cat", "old bread"))]
    sets, objective = LessonSets(lessons, dev=lessons, test=[]), ObjectiveConfig(kind="distribution")
    both = [str(tiny_folder(architecture)) for architecture in ("bert", "roberta")]
    alone = [np.array(taught(sets, [each], objective, device="cpu").train[0].targets) for each in both]
    together = taught(sets, both, objective, device="cpu").train[0].targets
    assert together == pytest.approx((alone[0] + alone[1]) / 2)
    assert np.abs(alone[0] - alone[1]).max() > 0.01


def test_several_teachers_must_share_a_range(tiny_folder: FolderOf, tmp_path: Path) -> None:
    poly = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=PolyConfig(codes=4), device="cpu")
    teachers = [str(tiny_folder("bert")), str(poly.save(tmp_path / "poly"))]
    lessons = [Lesson("the cat", ("the dog", "a cat"))]
    sets, objective = LessonSets(lessons, dev=lessons, test=[]), ObjectiveConfig(kind="distribution")
    with pytest.raises(InputError, match="several teachers are of one mind about scores from -1 to 1"):
        taught(sets, teachers, objective, device="cpu")


def test_a_teacher_that_is_not_there_is_named_before_anything_is_trained(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    table = tables(tiny_folder("bert"), teacher=str(tmp_path / "nobody"))
    with pytest.raises(tercet.ModelError, match=r"there is no folder .*nobody"):
        run(table, tmp_path / "run")


def test_a_pupil_that_is_not_there_is_named_before_its_teacher_is_asked(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    said: list[str] = []
    table = tables(tmp_path / "nobody", teacher=str(tiny_folder("bert")))
    with pytest.raises(tercet.ModelError, match=r"there is no folder .*nobody"):
        run(table, tmp_path / "run", teller=Teller(say=said.append))
    assert said == ["reading data"]


def test_a_recipe_names_one_teacher_or_several(tiny_folder: FolderOf) -> None:
    for given, named in (("bi", ("bi",)), (["a", "b"], ("a", "b")), ([], ())):
        recipe = make_recipe(tables(tiny_folder("bert"), teacher=given), name="test")
        assert recipe.teachers == named
        assert recipe.resolved()["teacher"] == (given or None)


def test_words_count_beside_a_teachers_score(tiny_folder: FolderOf) -> None:
    lessons = [Lesson("the cat", ("the dog", "a cat", "old bread"))]
    sets = LessonSets(lessons, dev=lessons, test=[])
    ask = partial(
        taught, sets, [str(tiny_folder("bert"))], ObjectiveConfig(kind="distribution"), device="cpu"
    )
    shares = WordShares(["the cat", "the dog", "a cat", "old bread"]).of_pairs(
        ["the cat"] * 3, ["the dog", "a cat", "old bread"]
    )
    alone, mixed = np.array(ask().train[0].targets), np.array(ask(words=0.5).dev[0].targets)
    assert mixed == pytest.approx((alone + 0.5 * shares) / 1.5)
    undirected = np.array(ask(words=0.5, both_ways=True).train[0].targets)
    assert undirected[:2] == pytest.approx(mixed[:2], abs=0.2)
    assert undirected[1] != mixed[1]  # "a cat" has a word that "the cat" lacks


def test_words_do_not_count_beside_scores_of_another_range(tiny_folder: FolderOf, tmp_path: Path) -> None:
    poly = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=PolyConfig(codes=4), device="cpu")
    poly.save(tmp_path / "poly")
    lessons = [Lesson("the cat", ("the dog", "a cat"))]
    sets, objective = LessonSets(lessons, dev=lessons, test=[]), ObjectiveConfig(kind="distribution")
    with pytest.raises(InputError, match="teacher_words counts beside scores from -1 to 1"):
        taught(sets, [str(tmp_path / "poly")], objective, words=0.3, device="cpu")


def test_a_run_of_before_there_were_teacher_words_goes_on(tiny_folder: FolderOf, tmp_path: Path) -> None:
    recipe = make_recipe(tables(tiny_folder("bert")), name="test")
    assert "teacher_words" not in recipe.resolved()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"teacher": "bi", "teacher_words": -1}, "teacher_words must be at least 0, got -1"),
        ({"teacher": 3}, "test: teacher names a model or a list of models, got 3"),
        ({"teacher": ["bi", "bi"]}, "test: a teacher is named twice: bi, bi"),
        ({"teacher": ["bi", " "]}, "test: teacher names a model or a list of models"),
        ({"teacher_words": 0.5}, "teacher_words counts beside a teacher's scores: name a teacher"),
        ({"teacher": "bi", "teacher_words": "many"}, "teacher_words must be a finite number, got str 'many'"),
    ],
)
def test_bad_teachers_are_refused(given: dict[str, Any], message: str, tiny_folder: FolderOf) -> None:
    with pytest.raises(InputError, match=message):
        make_recipe(tables(tiny_folder("bert"), **given), name="test")


def test_runs_with_another_seed_differ(tiny_folder: FolderOf, tmp_path: Path) -> None:
    recipe = make_recipe(tables(tiny_folder("bert"), training={"epochs": 1}), name="test")
    prints = {
        run_recipe(with_seed(recipe, seed), tmp_path / f"{n}", device="cpu")["fingerprint"]
        for n, seed in enumerate((3, 3, 4))
    }
    assert len(prints) == 2


LINES = [{"context": f"the cat {n}", "candidate": f"a dog {n}", "score": n % 2} for n in range(40)]
PAIRS = {"kind": "cosine"}


@pytest.mark.parametrize(
    ("change", "objective", "message"),
    [
        ({"score": 7}, PAIRS, r"line 1: a score must be from 0 to 1, got 7: set lowest and highest"),
        ({"score": None}, PAIRS, r"line 1: column 'score' is empty: label the row"),
        ({"score": "?"}, PAIRS, r"line 1: column 'score' must be a number, got '\?'"),
        ({"score": 3}, {"kind": "softmax"}, r"line 1: a label must be a whole number from 0 to 2, got 3"),
        ({"score": 0.5}, {"kind": "softmax"}, r"line 1: a label must be a whole number from 0 to 2, got 0.5"),
        ({}, {"kind": "in_batch"}, r"in_batch learns from answers, and this row has a score or label"),
        ({}, {"kind": "margin_mse"}, r"a teacher gives a score to each of two candidates or more, got 1"),
        ({}, {"kind": "ranking"}, r"ranking does not train a bi-encoder: choose one of softmax, cosine"),
    ],
)
def test_rows_that_do_not_fit_the_objective_are_named(
    change: dict[str, Any], objective: dict[str, Any], message: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    file = rows(tmp_path / "rows.jsonl", [LINES[0] | change, *LINES[1:]])
    table = tables(tiny_folder("bert"), data={"train": {"files": file}}, objective=objective)
    with pytest.raises((DataError, InputError), match=message):
        run(table, tmp_path / "run")


@pytest.mark.parametrize("objective", [PAIRS, {"kind": "softmax"}])
def test_one_class_is_nothing_to_learn(
    objective: dict[str, Any], tiny_folder: FolderOf, tmp_path: Path
) -> None:
    file = rows(tmp_path / "rows.jsonl", [line | {"score": 1} for line in LINES])
    table = tables(tiny_folder("bert"), data={"train": {"files": file}}, objective=objective)
    with pytest.raises(
        DataError, match=r"every row of the train data has the (score|label) 1: there is nothing"
    ):
        run(table, tmp_path / "run")


def test_training_rows_in_the_test_set_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    train, test = rows(tmp_path / "a.jsonl", LINES), rows(tmp_path / "b.jsonl", LINES[3:5])
    data = {"train": {"files": train}, "test": {"files": test}}
    table = tables(tiny_folder("bert"), data=data, objective=PAIRS)
    with pytest.raises(DataError, match=r"2 of 40 training rows are in the test data too, .*line 4"):
        run(table, tmp_path / "run")
    data["train"]["drop_overlap"] = True  # type: ignore[assignment]
    result = run(table, tmp_path / "again")
    assert result["train"]["lessons"] + result["dev"]["lessons"] == 38


def test_a_batch_of_one_has_no_negatives(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a batch of 1 has none: set examples to 2 or more"):
        run(tables(tiny_folder("bert"), batches={"examples": 1}), tmp_path / "run")


def test_a_ranking_needs_negatives(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(
        tiny_folder("bert"),
        model={"kind": "cross", "source": str(tiny_folder("bert"))},
        objective={"kind": "ranking"},
    )
    with pytest.raises(InputError, match="a ranking needs wrong candidates"):
        run(table, tmp_path / "run")
    with pytest.raises(InputError, match="500 negatives cannot be drawn from 108 different answers"):
        run({**table, "batches": {"examples": 4, "negatives": 500}}, tmp_path / "again")


def test_the_best_look_may_be_chosen_by_a_measure(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 3, "learning_rate": 3e-3, "best_by": "mrr"})
    result = run(table, tmp_path / "run")
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert result["dev"]["mrr"] == pytest.approx(max(row["eval_mrr"] for row in logged if "eval_mrr" in row))


def test_a_measure_that_is_not_taken_cannot_choose(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1, "best_by": "spearman"})
    with pytest.raises(
        InputError, match="best_by is 'spearman', but what is measured here is loss, recall_at_1"
    ):
        run(table, tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.epochs=0", r"\[training\]: epochs must be at least 1"),
        ("training.epoch=3", r"\[training\] has no setting 'epoch': it has epochs, learning_rate"),
        (
            "training.learning_rate=fast",
            r"\[training\]: learning_rate must be a finite number, got str",
        ),
        ("training.learning_rate=inf", r"\[training\]: learning_rate must be a finite number, got float inf"),
        ("training.epochs=true", r"\[training\]: epochs must be a whole number, got bool True"),
        ("training.betas=[0.9]", r"\[training\]: betas must be two numbers"),
        ("batches.seed=abc", r"\[batches\]: seed must be a whole number, got str 'abc'"),
        ("model.source=2024-01-01", r"\[model\]: source must be a string, got date"),
        ("data.train.columns=[1]", r"\[data.train\]: columns must be a table, got tuple"),
        ("data.train.files=3", r"\[data.train\]: files must be a list, each a string, got int 3"),
        ("after.training.epochs=1", r"after must name a recipe; its settings are changed in its own file"),
        ("model.codes=3", r"\[model\]: a bi-encoder cannot be made so \(.*'codes'\): it has towers"),
        ("model.kind=tri", r"\[model\]: kind must be one of model, bi, poly, cross"),
        ("data.train.files=[]", r"\[data.train\]: files must name at least one file"),
        ("data.valid.files=x", r"\[data\] has no setting 'valid': it has train, dev, test"),
        ("objective.kind=magic", r"\[objective\]: objective must be one of softmax"),
        ("nonsense", r"a change is written as table.setting=value, got 'nonsense'"),
        ("training=3", r"\[training\] must be a table, got 3"),
    ],
)
def test_a_recipe_with_a_mistake_says_where(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_recipe(RECIPES / "bi-sample.toml", [change])


def test_a_recipe_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no recipe"):
        read_recipe(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(InputError, match="is no TOML file"):
        read_recipe(tmp_path / "bad.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(InputError, match="names no training data"):
        read_recipe(tmp_path / "empty.toml")


def shipped() -> list[Path]:
    """The recipes of ``tercet train``: those of other commands have their own tests."""
    files = sorted(RECIPES.rglob("*.toml"))
    return [file for file in files if "pretrain" not in file.stem and "\nstudent =" not in file.read_text()]


@pytest.mark.parametrize("file", shipped(), ids=lambda file: file.stem)
def test_every_recipe_that_is_shipped_can_be_read(file: Path) -> None:
    assert read_recipe(file).about


def test_recipes_in_a_circle_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(f'after = "{other}.toml"\n[data.train]\nfiles = "x"')
    with pytest.raises(InputError, match="which comes after it: break the circle"):
        read_recipe(tmp_path / "a.toml")


def test_a_recipe_from_windows_can_be_read(tmp_path: Path) -> None:
    text = (RECIPES / "bi-sample.toml").read_text().replace("\n", "\r\n")
    (tmp_path / "recipe.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_recipe(tmp_path / "recipe.toml") == read_recipe(RECIPES / "bi-sample.toml")


def test_a_folder_that_is_no_run_does_not_become_one(tiny_folder: FolderOf, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(OutputError, match="is no run that could go on"):
        run(tables(tiny_folder("bert")), tmp_path, resume=True)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_other_data_does_not_go_on_with_a_run(tiny_folder: FolderOf, tmp_path: Path) -> None:
    file = rows(tmp_path / "rows.jsonl", LINES)
    table = tables(tiny_folder("bert"), data={"train": {"files": file}}, objective=PAIRS)
    run(table, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    rows(tmp_path / "rows.jsonl", [*LINES[1:], LINES[0]])
    with pytest.raises(InputError, match="begun with other data or another number of processes"):
        run(table, tmp_path / "run", resume=True)


def test_a_run_that_had_enough_does_not_go_on(tiny_folder: FolderOf, tmp_path: Path) -> None:
    training = {"epochs": 10, "patience": 1, "learning_rate": 0.05, "looks_per_epoch": 3}
    table = tables(tiny_folder("bert"), training=training)
    first = run(table, tmp_path / "run")
    assert first["train"]["step"] < 60
    (tmp_path / "run" / "model").rename(tmp_path / "model")
    again = run(table, tmp_path / "run", resume=True)
    assert again["train"]["step"] == first["train"]["step"]
    assert_same_model(tmp_path / "model", tmp_path / "run" / "model")


@pytest.mark.parametrize("kind", ["cosine", "softmax", "triplet"])
def test_drawn_negatives_have_no_scores(kind: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    lines = [{"anchor": f"the {n}", "positive": f"a {n}", "negative": "dog"} for n in range(20)]
    data: dict[str, Any] = {"files": rows(tmp_path / "rows.jsonl", lines), "reader": "triplets"}
    if kind in ("cosine", "softmax"):
        data = {"files": rows(tmp_path / "rows.jsonl", LINES)}
    table = tables(
        tiny_folder("bert"),
        data={"train": data},
        objective={"kind": kind},
        batches={"examples": 4, "negatives": 2},
    )
    with pytest.raises(InputError, match=f"{kind} cannot use negatives that are drawn"):
        run(table, tmp_path / "run")


def test_a_later_test_set_is_not_learnt_from(tiny_folder: FolderOf, tmp_path: Path) -> None:
    train, test = rows(tmp_path / "a.jsonl", LINES), rows(tmp_path / "b.jsonl", LINES[3:5])
    first = tables(tiny_folder("bert"), data={"train": {"files": train}}, objective=PAIRS)
    write_toml(tmp_path / "first.toml", first)
    data = {"train": {"files": train, "drop_overlap": True}, "test": {"files": test}}
    second = tables(tiny_folder("bert"), data=data, objective=PAIRS, after="first.toml")
    del second["model"]
    recipe = read_recipe(write_toml(tmp_path / "second.toml", second))
    with pytest.raises(DataError, match="2 of 40 training rows are in the later test data too"):
        run_recipe(recipe, tmp_path / "run", device="cpu")


def test_adapters_and_a_rescaled_layer_do_not_go_together(tiny_folder: FolderOf) -> None:
    table = tables(tiny_folder("bert"), adapter={"rank": 2}, training={"last_layer_std": 0.04})
    with pytest.raises(InputError, match="last_layer_std changes weights that adapters leave"):
        make_recipe(table, name="test")


@pytest.mark.parametrize(
    ("batches", "data", "message"),
    [
        ({"examples": 8, "tokens": 20}, {}, "a batch of one row has no negatives: raise tokens"),
        ({"examples": 8}, {"limit": 11}, "the dev data is too small"),
    ],
)
def test_a_row_alone_in_its_batch_is_noticed_before_training(
    batches: dict[str, int], data: dict[str, int], message: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    train = {"files": "sample:faq.en", "reader": "answers", **data}
    with pytest.raises(InputError, match=message):
        run(tables(tiny_folder("bert"), batches=batches, data={"train": train}), tmp_path / "run")


def start(arguments: list[str], **options: Any) -> "subprocess.Popen[str]":
    # a child of a background job would ignore Ctrl-C
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from tercet.cli import main; sys.argv = ['tercet', *sys.argv[1:]]; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"},
        **options,
    )


def wait_for_a_checkpoint(folder: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while last_checkpoint(folder / "checkpoints") is None:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_goes_on_to_the_same_model(
    number: signal.Signals, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    table = tables(
        tiny_folder("bert"),
        batches={"examples": 16, "negatives": 3},
        training={"epochs": 15, "looks_per_epoch": 1, "learning_rate": 1e-3},
    )
    recipe = write_toml(tmp_path / "recipe.toml", table)
    whole = run_recipe(read_recipe(recipe), tmp_path / "whole", device="cpu")
    arguments = ["train", str(recipe), "-o", str(tmp_path / "run"), "--device", "cpu"]
    stopped = start(arguments)
    wait_for_a_checkpoint(tmp_path / "run", stopped)
    stopped.send_signal(number)
    _, said = stopped.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert stopped.returncode == 130
        assert "stopping after this step, with a checkpoint" in said
        assert "which is written down: go on with --resume" in said
        assert "Traceback" not in said
    assert not (tmp_path / "run" / "model").exists()
    resumed = start([*arguments, "--resume"])
    _, said = resumed.communicate(timeout=240)
    assert resumed.returncode == 0, said
    assert_same_model(tmp_path / "whole" / "model", tmp_path / "run" / "model")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert whole["train"].keys() - result["train"].keys() == {"train_runtime"}  # known of the last part only


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tercet.cli import main
sys.argv = ["tercet", *sys.argv[1:]]
main()
"""


def test_a_checkpoint_that_cannot_be_written_is_said_and_leaves_no_half(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    recipe = write_toml(tmp_path / "recipe.toml", tables(tiny_folder("bert")))
    words = ["train", str(recipe), "-o", str(tmp_path / "run"), "--device", "cpu"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", FULL, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "a checkpoint could not be written to" in done.stderr
    assert "make room and go on from the last one" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "run" / "checkpoints").glob("checkpoint-*"))


def test_a_disk_without_room_is_noticed_before_training(
    tiny_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr("tercet.training.trainer.shutil.disk_usage", lambda _: Usage)
    with pytest.raises(OutputError, match=r"2 checkpoints and the one being written need .* MB in"):
        run(tables(tiny_folder("bert")), tmp_path / "run")


def test_adapters_are_saved_beside_the_model(tiny_folder: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs tercet[train]")
    table = tables(tiny_folder("bert"), adapter={"rank": 2}, training={"epochs": 2, "learning_rate": 1e-2})
    run(table, tmp_path / "run")
    whole, small = (tercet.load(tmp_path / "run" / name, device="cpu") for name in ("model", "adapter"))
    texts = ["the cat sat on the mat", "a dog ran", "old house"]
    assert abs(whole.score(texts[0], texts) - small.score(texts[0], texts)).max() < 1e-5
    untrained = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    assert abs(whole.score(texts[0], texts) - untrained.score(texts[0], texts)).max() > 1e-4
    saved = (tmp_path / "run" / "checkpoints").glob("*/model.safetensors")
    assert max(file.stat().st_size for file in saved) < 20_000  # what does not move is not saved again


def test_tensorboard_files_are_written(tiny_folder: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tercet[train]")
    run(tables(tiny_folder("bert"), training={"epochs": 1, "tensorboard": True}), tmp_path / "run")
    assert list((tmp_path / "run" / "checkpoints" / "tensorboard").glob("events.*"))
