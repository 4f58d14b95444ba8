"""The whole run on tiny models: what each scenario makes, what is kept, what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.augment.conftest import Recipe, some_pairs
from tests.cli.command import words_of
from tests.conftest import make_folder

import tercet
from tercet.augment.pipeline import GOLD_ALONE, Made, Pipeline
from tercet.augment.recipe import read_augment_recipe
from tercet.augment.report import measured, write_results
from tercet.augment.silver import read_silver
from tercet.errors import DataError, InputError

RECIPES = Path(__file__).parents[2] / "recipes"

FEW_LABELS = """
[sampling]
samplers = ["random", "kde", "bm25", "semantic", "bm25+semantic"]
pairs = 12
pool = 3
top_k = 2
searcher = "{backbone}"

[learning]
seeds = 1
"""


def run(recipe: Path, *changes: str, folder: str = "run") -> tuple[Made, list[str]]:
    """What was made, and which steps were not there yet."""
    pipeline = Pipeline(
        read_augment_recipe(recipe, changes), recipe.parent / folder, root=recipe.parent, device="cpu"
    )
    made = pipeline.run()
    return made, pipeline.made


def few_labels(world: Recipe, tiny_folder: Any, **more: Any) -> Path:
    return world(FEW_LABELS.format(backbone=tiny_folder("bert")), **more)


def test_every_sampler_makes_silver_and_a_student(world: Recipe, tiny_folder: Any) -> None:
    made, _ = run(few_labels(world, tiny_folder))
    samplers = ["random", "kde", "bm25", "semantic", "bm25+semantic"]
    assert list(made.students) == [GOLD_ALONE, *samplers]
    assert list(made.silver) == samplers
    for name, file in made.silver.items():
        rows = list(read_silver(file))
        assert 0 < len(rows) <= 12
        assert all(0 <= row.score <= 5 for row in rows)
        assert any(row.score > 1 for row in rows)  # shares are brought to gold's range
        assert {row.sampler for row in rows} == {name}
        assert {row.labeller for row in rows} == {tercet.load(made.labellers[0]).fingerprint}


def test_no_silver_pair_has_a_label_already(world: Recipe, tiny_folder: Any) -> None:
    made, _ = run(few_labels(world, tiny_folder))
    known = made.gold.known()
    for file in made.silver.values():
        pairs = {(row.context.casefold(), row.candidate.casefold()) for row in read_silver(file)}
        assert pairs
        assert not pairs & known


def test_a_second_run_makes_nothing_again(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    _, first = run(recipe)
    _, second = run(recipe)
    assert "silver-bm25.jsonl" in first
    assert second == []


def test_a_changed_setting_makes_anew_only_what_follows(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    run(recipe)
    _, made = run(recipe, "sampling.top_k=1")
    assert "pairs-bm25.jsonl" in made
    assert "student-semantic-0" in made
    assert not [name for name in made if "labeller" in name or "random" in name or "kde" in name]
    assert "student-gold-alone-0" not in made


def test_a_killed_labelling_goes_on_after_its_last_whole_row(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    run(recipe)
    folder = recipe.parent / "run"
    whole = (folder / "labelled-bm25.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    note = folder / "labelled-bm25.jsonl.from.json"
    marked = lines[0].replace('"sampler": "bm25"', '"sampler": "was there"')
    (folder / "labelled-bm25.jsonl.growing").write_text(marked + lines[1][:20])
    note.rename(folder / "labelled-bm25.jsonl.growing.from.json")
    (folder / "labelled-bm25.jsonl").unlink()
    _, steps = run(recipe)
    assert "labelled-bm25.jsonl" in steps
    found = (folder / "labelled-bm25.jsonl").read_text().splitlines(keepends=True)
    assert found[0] == marked  # what was there is not labelled again
    assert len(found) == len(lines)
    kept, old = json.loads(found[-1]), json.loads(lines[-1])
    assert kept.pop("score") == pytest.approx(old.pop("score"), abs=1e-4)
    assert kept == old


def test_the_best_seed_labels_and_an_ensemble_is_all_of_them(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    made, _ = run(recipe, "labelling.seeds=2", 'sampling.samplers=["bm25"]')
    scores = {
        seed: json.loads((recipe.parent / f"run/labeller-{seed}/result.json").read_text())["dev"]["spearman"]
        for seed in range(2)
    }
    best = max(scores, key=scores.__getitem__)
    assert [each.parent.name for each in made.labellers] == [f"labeller-{best}"]
    result = recipe.parent / f"run/labeller-{1 - best}/result.json"
    told = json.loads(result.read_text())
    result.write_text(json.dumps(told | {"dev": {"spearman": 1.0}}))
    made, _ = run(recipe, "labelling.seeds=2", 'sampling.samplers=["bm25"]')
    assert [each.parent.name for each in made.labellers] == [f"labeller-{1 - best}"]
    both, _ = run(recipe, "labelling.seeds=2", "labelling.ensemble=true", 'sampling.samplers=["bm25"]')
    assert len(both.labellers) == 2
    assert any(row.spread > 0 for row in read_silver(both.silver["bm25"]))


def test_pairs_on_which_an_ensemble_is_not_of_one_mind_are_left_out(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    settings = ["labelling.seeds=2", "labelling.ensemble=true", 'sampling.samplers=["bm25"]']
    spreads = sorted(row.spread for row in read_silver(run(recipe, *settings)[0].silver["bm25"]))
    middle = spreads[len(spreads) // 2]
    kept = read_silver(run(recipe, *settings, f"labelling.most_spread={middle}")[0].silver["bm25"])
    assert sorted(row.spread for row in kept) == [spread for spread in spreads if spread <= middle]


def test_without_gold_a_student_learns_from_texts_alone(world: Recipe, tiny_folder: Any) -> None:
    texts = [{"text": text} for row in some_pairs(20, seed=9) for text in (row["context"], row["candidate"])]
    tables = (
        FEW_LABELS.format(backbone=tiny_folder("bert")) + 'gold = false\n[texts]\nfiles = "texts.jsonl"\n'
    )
    recipe = world(tables, rows={"texts": [*texts, texts[0], {"text": "  "}]})
    made, _ = run(recipe, 'sampling.samplers=["bm25"]')
    allowed = {str(row["text"]) for row in texts}
    assert all({row.context, row.candidate} <= allowed for row in read_silver(made.silver["bm25"]))
    learnt = json.loads((recipe.parent / "run/student-bm25-0/config.json").read_text())["train"]["files"]
    assert [Path(file).name for file in learnt] == ["silver-bm25.jsonl"]


def test_labels_can_be_decisions(world: Recipe, tiny_folder: Any) -> None:
    rows = {
        name: [{**row, "score": float(str(row["score"]) > "2") * 5} for row in some_pairs(24, seed=seed)]
        for seed, name in enumerate(("gold", "dev", "test"))
    }
    recipe = few_labels(world, tiny_folder, rows=rows)
    made, _ = run(recipe, 'labelling.labels="binary"', 'sampling.samplers=["bm25"]')
    assert made.noise is not None
    assert made.noise.threshold is not None
    labelled = [row.score for row in read_silver(recipe.parent / "run/labelled-bm25.jsonl")]
    found = [row.score for row in read_silver(made.silver["bm25"])]
    assert found == [5.0 * (score >= made.noise.threshold) for score in labelled]


def test_decisions_need_matches_and_others(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    with pytest.raises(InputError, match="needs dev data of matches and others"):
        run(recipe, 'labelling.labels="binary"', 'sampling.samplers=["bm25"]')


def test_a_second_round_is_searched_by_the_first_student(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    made, _ = run(recipe, "learning.rounds=2", 'sampling.samplers=["semantic"]')
    assert list(made.students) == [GOLD_ALONE, "semantic", "semantic, round 2"]
    note = json.loads((recipe.parent / "run/pairs-semantic-round-2.jsonl.from.json").read_text())
    assert note["searcher"] == tercet.load(made.students["semantic"][0]).fingerprint


def test_a_poly_encoder_learns_the_scores_of_several_partners(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder, kind="poly", objective='kind = "margin_mse"\nhighest = 5')
    made, _ = run(recipe, 'sampling.samplers=["bm25"]', "student.model.codes=4")
    assert list(made.students) == ["bm25"]
    rows = [
        [
            json.loads(line)["context"]
            for line in (recipe.parent / f"run/{name}.jsonl").read_text().splitlines()
        ]
        for name in ("contrasts-bm25", "contrasts-bm25-dev")
    ]
    assert rows[1]
    assert not set(rows[0]) & set(rows[1])
    assert tercet.load(made.students["bm25"][0]).kind == "poly"


def test_changed_words_keep_golds_score(world: Recipe, tiny_folder: Any) -> None:
    tables = (
        '[words]\nchanges = ["deletion", "swap", "substitution"]\nencoder = "{}"\nleast_similarity = -1\n'
        "[learning]\nseeds = 1"
    )
    made, _ = run(world(tables.format(tiny_folder("bert")), labelled=False))
    assert list(made.students) == [GOLD_ALONE, "deletion", "swap", "substitution"]
    assert made.labellers == []
    assert made.noise is None
    for name, file in made.silver.items():
        for row in read_silver(file):
            assert row.score == made.gold.train[row.parents[0]].targets[0]
            assert (row.sampler, row.labeller) == (name, "")


def test_the_report_names_every_row_and_escapes_texts(world: Recipe, tiny_folder: Any) -> None:
    gold = some_pairs(24, seed=0)
    gold[0]["context"] = "<script>alert(1)</script> cat"
    recipe = few_labels(world, tiny_folder, rows={"gold": gold})
    made, _ = run(recipe, 'sampling.samplers=["random"]')
    read = read_augment_recipe(recipe, ['sampling.samplers=["random"]'])
    result = write_results(made, measured(made), read, recipe.parent / "run")
    page = (recipe.parent / "run/report.html").read_text()
    assert [row["model"] for row in result["results"]["rows"]] == [
        GOLD_ALONE,
        "random",
        "cross-encoder, which labelled",
    ]
    assert result["silver"]["random"]["pairs"] == 12
    assert "<script>" not in page
    assert "http" not in words_of(page).replace("http-equiv", "")


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        (
            "gold",
            [{"context": f"a {n}", "candidate": "b", "score": 3.0} for n in range(5)],
            "have the score 3",
        ),
        ("dev", [{"context": f"a {n}", "candidate": "b", "score": 3.0} for n in range(5)], "of the dev data"),
        ("gold", [{"context": "a", "candidate": "b", "score": 7.0}], "between 0 and 5, got 7"),
        ("gold", some_pairs(30, seed=2), "training rows are in the test data too"),
        ("dev", some_pairs(30, seed=2), "30 of 30 dev rows are in the test data too"),
        ("gold", [{"context": ["hi", "you"], "candidate": "b", "score": 1.0}], "this context has turns"),
    ],
)
def test_gold_that_teaches_nothing_is_refused(
    name: str, rows: list[dict[str, object]], message: str, world: Recipe, tiny_folder: Any
) -> None:
    recipe = few_labels(world, tiny_folder, rows={name: rows})
    with pytest.raises(DataError, match=message):
        run(recipe)


def test_silver_that_leaks_test_pairs_is_refused(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    made, _ = run(recipe, 'sampling.samplers=["bm25"]')
    leaked = made.gold.test[0]
    with made.silver["bm25"].open("a") as file:
        row = {"context": leaked.context, "candidate": leaked.candidates[0], "score": 1.0}
        file.write(json.dumps(row | {"sampler": "x", "parents": [0, 0], "labeller": "", "spread": 0}) + "\n")
    with pytest.raises(DataError, match=r"silver-bm25.jsonl holds 1 pairs that gold, dev or test data has"):
        run(recipe, 'sampling.samplers=["bm25"]')


def test_too_few_texts_for_a_pair_are_refused(world: Recipe, tiny_folder: Any) -> None:
    tables = FEW_LABELS.format(backbone=tiny_folder("bert")) + '[texts]\nfiles = "texts.jsonl"\n'
    recipe = world(tables, rows={"texts": [{"text": "cat"}, {"text": " CAT "}, {"text": ""}]})
    with pytest.raises(DataError, match="at least two different texts, got 1"):
        run(recipe)


def test_a_labeller_whose_scores_are_no_shares_is_refused(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    cross = recipe.parent / "cross.toml"
    cross.write_text(cross.read_text().replace('activation = "sigmoid"', 'activation = "identity"'))
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        run(recipe)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('sampling.samplers=["bm26"]', "a sampler must be one of"),
        ("sampling.samplers=[]", "samplers must be different ones"),
        ("sampling.pairs=0", "pairs must be"),
        ("labelling.most_spread=0.1", "of an ensemble"),
        ("learning.rounds=0", "rounds must be"),
        ("learning.what=1", "no setting 'what'"),
        ('student.objective.kind="softmax"', "a student learns from scores"),
        ('labeller.objective.kind="ranking"', "a labeller learns scores"),
        ("labeller.objective.highest=50", "scores go from 0 to 50, the student's from 0 to 5"),
        ('labeller.teacher="bi"', "not from a teacher"),
        ('student.teacher="bi"', "leave teacher out"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    change: str, message: str, world: Recipe, tiny_folder: Any
) -> None:
    recipe = few_labels(world, tiny_folder)
    with pytest.raises(InputError, match=message):
        read_augment_recipe(recipe, [change])


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("bi", "student.train.x=1", "has no setting"),
        ("poly", "learning.rounds=2", "only a bi-encoder of one tower can search"),
        ("poly", "student.data.train.both_ways=true", "leave both_ways out"),
        ("poly", 'student.training.best_by="spearman"', "set best_by"),
    ],
)
def test_what_cannot_end_well_does_not_begin(
    kind: str, change: str, message: str, world: Recipe, tiny_folder: Any
) -> None:
    objective = 'kind = "margin_mse"\nhighest = 5' if kind == "poly" else 'kind = "cosine"\nhighest = 5'
    recipe = few_labels(world, tiny_folder, kind=kind, objective=objective)
    with pytest.raises(InputError, match=message):
        read_augment_recipe(recipe, [change])


def test_a_pair_that_has_a_label_the_other_way_round_is_known(world: Recipe, tiny_folder: Any) -> None:
    made, _ = run(few_labels(world, tiny_folder), 'sampling.samplers=["random"]')
    for lesson in (made.gold.train[0], made.gold.dev[0], made.gold.test[0]):
        assert (lesson.candidates[0], lesson.context) in made.gold.known()


def test_a_folder_of_other_things_is_left_alone(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    gold = (recipe.parent / "gold.jsonl").read_text()
    with pytest.raises(tercet.OutputError, match="holds other things"):
        run(recipe, folder=".")
    assert (recipe.parent / "gold.jsonl").read_text() == gold


def test_other_test_data_makes_changed_words_anew(world: Recipe, tiny_folder: Any) -> None:
    tables = f"""
[words]
changes = ["swap"]
encoder = "{tiny_folder("bert")}"
least_similarity = -1
[learning]
seeds = 1
"""
    recipe = world(tables, labelled=False)
    made, _ = run(recipe)
    leaked = next(iter(read_silver(made.silver["swap"])))
    with (recipe.parent / "test.jsonl").open("a") as file:
        file.write(json.dumps({"context": leaked.context, "candidate": leaked.candidate, "score": 1}) + "\n")
    again, steps = run(recipe)
    assert {"silver-swap.jsonl", "student-swap-0"} <= set(steps)
    assert (leaked.context, leaked.candidate) not in {
        (row.context, row.candidate) for row in read_silver(again.silver["swap"])
    }


@pytest.mark.parametrize(
    ("change", "made", "kept"),
    [
        ("labelling.seeds=2", "labeller-1", "labeller-0"),
        ("labeller.training.epochs=2", "labeller-0", "student-gold-alone-0"),
        ("student.training.learning_rate=0.1", "student-bm25-0", "labelled-bm25.jsonl"),
        ("sampling.pairs=3", "silver-bm25.jsonl", "noise.json"),
        ("learning.seeds=2", "student-bm25-1", "student-bm25-0"),
    ],
)
def test_a_setting_reaches_what_depends_on_it(
    change: str, made: str, kept: str, world: Recipe, tiny_folder: Any
) -> None:
    recipe = few_labels(world, tiny_folder)
    run(recipe, 'sampling.samplers=["bm25"]')
    _, steps = run(recipe, 'sampling.samplers=["bm25"]', change)
    assert made in steps
    assert kept not in steps


def test_another_backbone_under_the_same_name_makes_models_anew(
    world: Recipe, tiny_folder: Any, tmp_path: Path
) -> None:
    recipe = few_labels(world, tiny_folder)
    own = tmp_path / "backbone"
    shutil.copytree(tiny_folder("bert"), own)
    settings = ['sampling.samplers=["bm25"]', f'student.model.source="{own}"']
    run(recipe, *settings)
    shutil.rmtree(own)
    make_folder(own, seed=5)
    _, steps = run(recipe, *settings)
    assert steps == ["student-gold-alone-0", "student-bm25-0"]


def test_what_labellers_come_after_is_trained_once(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    folder = recipe.parent
    labeller = (folder / "cross.toml").read_text()
    (folder / "first.toml").write_text(labeller.replace("unused.jsonl", "first.jsonl"))
    (folder / "first.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in some_pairs(40, seed=9)))
    _, rest = labeller.split("[data.train]")
    (folder / "cross.toml").write_text(f'after = "first.toml"\n[data.train]{rest}')
    settings = ['sampling.samplers=["bm25"]', "labelling.seeds=2"]
    made, steps = run(recipe, *settings)
    begun = json.loads((folder / "run/labeller-1/config.json").read_text())["model"]["source"]
    assert Path(begun) == folder / "run/before-labeller/model"
    assert [step for step in steps if "labeller" in step] == ["before-labeller", "labeller-0", "labeller-1"]
    (folder / "first.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in some_pairs(40, seed=8)))
    _, steps = run(recipe, *settings)
    assert [step for step in steps if "labeller" in step] == ["before-labeller", "labeller-0", "labeller-1"]
    assert "student-gold-alone-0" not in steps
    assert made.labellers


def test_another_teacher_under_the_same_name_makes_labellers_anew(
    world: Recipe, tiny_folder: Any, tmp_path: Path
) -> None:
    recipe = few_labels(world, tiny_folder)
    folder, teacher = recipe.parent, tmp_path / "teacher"
    shutil.copytree(tiny_folder("bert"), teacher)
    labeller = (folder / "cross.toml").read_text()
    answers = [{"context": row["context"], "answer": row["candidate"]} for row in some_pairs(40, seed=9)]
    (folder / "first.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    first = labeller.replace('files = "unused.jsonl"', 'files = "first.jsonl"\nreader = "answers"')
    (folder / "first.toml").write_text(f'teacher = "{teacher}"\n{first.replace("highest = 5", "")}')
    _, rest = labeller.split("[data.train]")
    (folder / "cross.toml").write_text(f'after = "first.toml"\n[data.train]{rest}')
    run(recipe, 'sampling.samplers=["bm25"]')
    shutil.rmtree(teacher)
    make_folder(teacher, seed=5)
    _, steps = run(recipe, 'sampling.samplers=["bm25"]')
    assert [step for step in steps if "labeller" in step] == ["before-labeller", "labeller-0"]


def test_a_broken_row_names_its_place(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    made, _ = run(recipe, 'sampling.samplers=["bm25"]')
    made.silver["bm25"].write_text('{"context": "a"}\n')
    with pytest.raises(DataError, match=r"silver-bm25.jsonl, line 1: this is no row that tercet wrote"):
        run(recipe, 'sampling.samplers=["bm25"]')


def test_a_broken_note_makes_its_file_anew(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    run(recipe, 'sampling.samplers=["bm25"]')
    (recipe.parent / "run/silver-bm25.jsonl.from.json").write_text("")
    _, steps = run(recipe, 'sampling.samplers=["bm25"]')
    assert steps == ["silver-bm25.jsonl"]


def test_too_few_pairs_are_said_and_written_down(world: Recipe, tiny_folder: Any) -> None:
    recipe = few_labels(world, tiny_folder)
    made, _ = run(recipe, 'sampling.samplers=["bm25"]', "sampling.pairs=100000")
    assert len(made.notes) == 1
    assert "pairs instead of 100,000" in made.notes[0]
    assert "a larger top_k" in made.notes[0]


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(RECIPES.glob("augment-*.toml")) if "\nstudent =" in file.read_text()],
    ids=lambda file: file.stem,
)
def test_every_recipe_that_is_shipped_can_be_read(file: Path) -> None:
    assert read_augment_recipe(file).about
