"""The pipeline with tiny models: its results, its cache, and the recipes and data it refuses."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from tests.augment.conftest import FolderOf, WriteRecipe, make_pairs
from tests.cli.command import text_of
from tests.conftest import make_folder

import tercet
from tercet.augment.pipeline import GOLD_ONLY, Augmented, Pipeline
from tercet.augment.report import LABELLER, evaluate_students, write_results
from tercet.augment.silver import read_silver
from tercet.errors import DataError, InputError, OutputError
from tercet.files.structured import read_toml
from tercet.settings.augment import read_augment_recipe

RECIPES = Path(__file__).parents[2] / "recipes"

SAMPLING = """
[sampling]
samplers = ["random", "kde", "bm25", "semantic", "bm25+semantic"]
pairs = 12
pool = 3
top_k = 2
searcher = "{backbone}"

[students]
seeds = 1
"""


def run(recipe: Path, *changes: str, folder: str = "run") -> tuple[Augmented, list[str]]:
    """The results, and the names of those that were not cached."""
    pipeline = Pipeline(
        read_augment_recipe(recipe, changes), recipe.parent / folder, root=recipe.parent, device="cpu"
    )
    return pipeline.run(), pipeline.computed


def assert_refused(recipe: Path, change: str, message: str) -> None:
    """The recipe with a change is an error, before anything is written."""
    folder = recipe.parent / "run"
    with pytest.raises(InputError, match=message):
        Pipeline(read_augment_recipe(recipe, [change]), folder)
    assert not folder.exists()


@pytest.fixture
def small_recipe(write_recipe: WriteRecipe, tiny_folder: FolderOf) -> WriteRecipe:
    """Writes a recipe with all samplers."""
    return partial(write_recipe, SAMPLING.format(backbone=tiny_folder("bert")))


def test_every_sampler_has_silver_pairs_and_a_student(small_recipe: WriteRecipe) -> None:
    results, _ = run(small_recipe())
    samplers = ["random", "kde", "bm25", "semantic", "bm25+semantic"]
    assert list(results.students) == [GOLD_ONLY, *samplers]
    assert list(results.silver) == samplers
    for name, file in results.silver.items():
        rows = list(read_silver(file))
        assert 0 < len(rows) <= 12
        assert all(0 <= row.score <= 5 for row in rows)
        assert any(row.score > 1 for row in rows)  # scores are scaled to the range of gold
        assert {row.sampler for row in rows} == {name}
        assert {row.labeller for row in rows} == {tercet.load(results.labellers[0]).fingerprint}


def test_no_silver_pair_is_labelled_already(small_recipe: WriteRecipe) -> None:
    results, _ = run(small_recipe())
    known = results.gold.known_pairs()
    for file in results.silver.values():
        pairs = {(row.context.casefold(), row.candidate.casefold()) for row in read_silver(file)}
        assert pairs
        assert not pairs & known


def test_a_second_run_computes_nothing(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    _, first = run(recipe)
    _, second = run(recipe)
    assert "silver-bm25.jsonl" in first
    assert second == []


def test_a_changed_setting_recomputes_only_dependent_steps(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    run(recipe)
    _, steps = run(recipe, "sampling.top_k=1")
    assert "pairs-bm25.jsonl" in steps
    assert "student-semantic-0" in steps
    assert not [name for name in steps if "labeller" in name or "random" in name or "kde" in name]
    assert "student-gold-only-0" not in steps


def test_interrupted_labelling_continues_after_the_last_complete_row(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    run(recipe)
    folder = recipe.parent / "run"
    whole = (folder / "labelled-bm25.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    inputs = folder / "labelled-bm25.jsonl.from.json"
    marked = lines[0].replace('"sampler": "bm25"', '"sampler": "labelled before"')
    (folder / "labelled-bm25.jsonl.growing").write_text(marked + lines[1][:20])
    inputs.rename(folder / "labelled-bm25.jsonl.growing.from.json")
    (folder / "labelled-bm25.jsonl").unlink()
    _, steps = run(recipe)
    assert "labelled-bm25.jsonl" in steps
    found = (folder / "labelled-bm25.jsonl").read_text().splitlines(keepends=True)
    assert found[0] == marked  # the complete row is not labelled again
    assert len(found) == len(lines)
    new, old = json.loads(found[-1]), json.loads(lines[-1])
    assert new.pop("score") == pytest.approx(old.pop("score"), abs=1e-4)
    assert new == old


def test_the_best_seed_labels_and_an_ensemble_uses_all_seeds(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    results, _ = run(recipe, "labelling.seeds=2", 'sampling.samplers=["bm25"]')
    scores = {
        seed: json.loads((recipe.parent / f"run/labeller-{seed}/result.json").read_text())["dev"]["spearman"]
        for seed in range(2)
    }
    best = max(scores, key=scores.__getitem__)
    assert [each.parent.name for each in results.labellers] == [f"labeller-{best}"]
    result = recipe.parent / f"run/labeller-{1 - best}/result.json"
    content = json.loads(result.read_text())
    result.write_text(json.dumps(content | {"dev": {"spearman": 1.0}}))
    results, _ = run(recipe, "labelling.seeds=2", 'sampling.samplers=["bm25"]')
    assert [each.parent.name for each in results.labellers] == [f"labeller-{1 - best}"]
    both, _ = run(recipe, "labelling.seeds=2", "labelling.ensemble=true", 'sampling.samplers=["bm25"]')
    assert len(both.labellers) == 2
    assert any(row.disagreement > 0 for row in read_silver(both.silver["bm25"]))


def test_pairs_on_which_an_ensemble_disagrees_are_dropped(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    settings = ["labelling.seeds=2", "labelling.ensemble=true", 'sampling.samplers=["bm25"]']
    values = sorted(row.disagreement for row in read_silver(run(recipe, *settings)[0].silver["bm25"]))
    middle = values[len(values) // 2]
    kept = read_silver(run(recipe, *settings, f"labelling.max_disagreement={middle}")[0].silver["bm25"])
    assert sorted(row.disagreement for row in kept) == [value for value in values if value <= middle]


def test_without_gold_students_learn_from_silver_pairs_only(
    write_recipe: WriteRecipe, tiny_folder: FolderOf
) -> None:
    texts = [{"text": text} for row in make_pairs(20, seed=9) for text in (row["context"], row["candidate"])]
    tables = SAMPLING.format(backbone=tiny_folder("bert")) + 'gold = false\n[texts]\nfiles = "texts.jsonl"\n'
    recipe = write_recipe(tables, rows={"texts": [*texts, texts[0], {"text": "  "}]})
    results, _ = run(recipe, 'sampling.samplers=["bm25"]')
    allowed = {str(row["text"]) for row in texts}
    assert all({row.context, row.candidate} <= allowed for row in read_silver(results.silver["bm25"]))
    files = json.loads((recipe.parent / "run/student-bm25-0/config.json").read_text())["train"]["files"]
    assert [Path(file).name for file in files] == ["silver-bm25.jsonl"]


def test_binary_labels_follow_the_threshold(small_recipe: WriteRecipe) -> None:
    rows = {
        name: [{**row, "score": float(str(row["score"]) > "2") * 5} for row in make_pairs(24, seed=seed)]
        for seed, name in enumerate(("gold", "dev", "test"))
    }
    recipe = small_recipe(rows=rows)
    results, _ = run(recipe, 'labelling.labels="binary"', 'sampling.samplers=["bm25"]')
    assert results.noise is not None
    assert results.noise.threshold is not None
    labelled = [row.score for row in read_silver(recipe.parent / "run/labelled-bm25.jsonl")]
    found = [row.score for row in read_silver(results.silver["bm25"])]
    assert found == [5.0 * (score >= results.noise.threshold) for score in labelled]


def test_binary_labels_need_binary_dev_data(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    with pytest.raises(InputError, match="needs dev data with two different scores"):
        run(recipe, 'labelling.labels="binary"', 'sampling.samplers=["bm25"]')


def test_the_student_of_the_first_round_searches_in_the_second(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    results, _ = run(recipe, "students.rounds=2", 'sampling.samplers=["semantic"]')
    assert list(results.students) == [GOLD_ONLY, "semantic", "semantic, round 2"]
    inputs = json.loads((recipe.parent / "run/pairs-semantic-round-2.jsonl.from.json").read_text())
    assert inputs["searcher"] == tercet.load(results.students["semantic"][0]).fingerprint


def test_a_poly_encoder_is_distilled_from_scores_of_several_partners(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe(kind="poly", objective='kind = "margin_mse"\nmax_score = 5')
    results, _ = run(recipe, 'sampling.samplers=["bm25"]', "student.model.codes=4")
    assert list(results.students) == ["bm25"]
    rows = [
        [
            json.loads(line)["context"]
            for line in (recipe.parent / f"run/{name}.jsonl").read_text().splitlines()
        ]
        for name in ("contrasts-bm25", "contrasts-bm25-dev")
    ]
    assert rows[1]
    assert not set(rows[0]) & set(rows[1])
    assert tercet.load(results.students["bm25"][0]).kind == "poly"


def test_changed_words_keep_the_gold_score(write_recipe: WriteRecipe, tiny_folder: FolderOf) -> None:
    tables = (
        '[words]\nchanges = ["deletion", "swap", "substitution"]\nencoder = "{}"\nmin_similarity = -1\n'
        "[students]\nseeds = 1"
    )
    results, _ = run(write_recipe(tables.format(tiny_folder("bert")), labelled=False))
    assert list(results.students) == [GOLD_ONLY, "deletion", "swap", "substitution"]
    assert results.labellers == []
    assert results.noise is None
    for name, file in results.silver.items():
        for row in read_silver(file):
            assert row.score == results.gold.train[row.parents[0]].targets[0]
            assert (row.sampler, row.labeller) == (name, "")


def test_the_report_has_every_row_and_escapes_texts(small_recipe: WriteRecipe) -> None:
    gold = make_pairs(24, seed=0)
    gold[0]["context"] = "<script>alert(1)</script> cat"
    recipe = small_recipe(rows={"gold": gold})
    results, _ = run(recipe, 'sampling.samplers=["random"]')
    read = read_augment_recipe(recipe, ['sampling.samplers=["random"]'])
    result = write_results(results, evaluate_students(results), read, recipe.parent / "run")
    page = (recipe.parent / "run/report.html").read_text()
    assert [row["model"] for row in result["results"]["rows"]] == [GOLD_ONLY, "random", LABELLER]
    assert result["silver"]["random"]["pairs"] == 12
    assert "<script>" not in page
    assert "http" not in text_of(page).replace("http-equiv", "")


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        (
            "gold",
            [{"context": f"a {n}", "candidate": "b", "score": 3.0} for n in range(5)],
            "have the score 3",
        ),
        ("dev", [{"context": f"a {n}", "candidate": "b", "score": 3.0} for n in range(5)], "of the dev data"),
        ("gold", [{"context": "a", "candidate": "b", "score": 7.0}], "the score must be from 0 to 5, got 7"),
        ("gold", make_pairs(30, seed=2), "training rows are in the test data too"),
        ("dev", make_pairs(30, seed=2), "30 of 30 dev rows are also in the test data"),
        ("gold", [{"context": ["hi", "you"], "candidate": "b", "score": 1.0}], "this context has turns"),
    ],
)
def test_unusable_gold_data_is_refused(
    name: str, rows: list[dict[str, object]], message: str, small_recipe: WriteRecipe
) -> None:
    recipe = small_recipe(rows={name: rows})
    with pytest.raises(DataError, match=message):
        run(recipe)


def test_silver_pairs_from_the_test_data_are_refused(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    results, _ = run(recipe, 'sampling.samplers=["bm25"]')
    leaked = results.gold.test[0]
    with results.silver["bm25"].open("a") as file:
        pair = {"context": leaked.context, "candidate": leaked.candidates[0], "score": 1.0}
        provenance = {"sampler": "x", "parents": [0, 0], "labeller": "", "disagreement": 0}
        file.write(json.dumps(pair | provenance) + "\n")
    with pytest.raises(DataError, match=r"silver-bm25.jsonl contains 1 pairs of the gold, dev or test data"):
        run(recipe, 'sampling.samplers=["bm25"]')


def test_a_single_distinct_text_is_refused(write_recipe: WriteRecipe, tiny_folder: FolderOf) -> None:
    tables = SAMPLING.format(backbone=tiny_folder("bert")) + '[texts]\nfiles = "texts.jsonl"\n'
    recipe = write_recipe(tables, rows={"texts": [{"text": "cat"}, {"text": " CAT "}, {"text": ""}]})
    with pytest.raises(DataError, match="at least two different texts, got 1"):
        run(recipe)


def test_a_labeller_with_scores_outside_0_to_1_is_refused(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    cross = recipe.parent / "cross.toml"
    cross.write_text(cross.read_text().replace('activation = "sigmoid"', 'activation = "identity"'))
    with pytest.raises(InputError, match="a labeller's scores must be from 0 to 1"):
        run(recipe)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('sampling.samplers=["bm26"]', "a sampler must be one of"),
        ("sampling.samplers=[]", "samplers must be different ones"),
        ("sampling.pairs=0", "pairs must be"),
        ("labelling.max_disagreement=0.1", "needs ensemble = true"),
        ("students.rounds=0", "rounds must be"),
        ("students.what=1", "unknown setting 'what'"),
        ('student.objective.kind="softmax"', "a student needs an objective that learns from scores"),
        ('labeller.objective.kind="listwise"', "a labeller needs the objective bce or mse, got listwise"),
        ("labeller.objective.max_score=50", "range from 0 to 50, the student's from 0 to 5"),
        ('labeller.teacher="bi"', "a labeller learns from gold data: remove teacher"),
        ('student.teacher="bi"', "a student learns from gold and silver data: remove teacher"),
    ],
)
def test_invalid_settings_are_refused(change: str, message: str, small_recipe: WriteRecipe) -> None:
    assert_refused(small_recipe(), change, message)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("bi", "student.train.x=1", "unknown setting 'train'"),
        ("poly", "students.rounds=2", "rounds above 1 need a bi-encoder with one tower"),
        ("poly", "student.data.train.both_directions=true", "remove both_directions"),
        ("poly", 'student.training.metric_for_best_model="spearman"', "set metric_for_best_model"),
    ],
)
def test_recipes_that_cannot_work_are_refused_before_training(
    kind: str, change: str, message: str, small_recipe: WriteRecipe
) -> None:
    objective = 'kind = "margin_mse"\nmax_score = 5' if kind == "poly" else 'kind = "cosine"\nmax_score = 5'
    assert_refused(small_recipe(kind=kind, objective=objective), change, message)


def test_labelled_pairs_are_known_in_both_directions(small_recipe: WriteRecipe) -> None:
    results, _ = run(small_recipe(), 'sampling.samplers=["random"]')
    for example in (results.gold.train[0], results.gold.dev[0], results.gold.test[0]):
        assert (example.candidates[0], example.context) in results.gold.known_pairs()


def test_a_folder_of_other_files_stays_unchanged(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    gold = (recipe.parent / "gold.jsonl").read_text()
    with pytest.raises(OutputError, match="is not a folder of `tercet augment`"):
        run(recipe, folder=".")
    assert (recipe.parent / "gold.jsonl").read_text() == gold


def test_changed_words_are_recomputed_for_other_test_data(
    write_recipe: WriteRecipe, tiny_folder: FolderOf
) -> None:
    tables = f"""
[words]
changes = ["swap"]
encoder = "{tiny_folder("bert")}"
min_similarity = -1
[students]
seeds = 1
"""
    recipe = write_recipe(tables, labelled=False)
    results, _ = run(recipe)
    leaked = next(iter(read_silver(results.silver["swap"])))
    with (recipe.parent / "test.jsonl").open("a") as file:
        file.write(json.dumps({"context": leaked.context, "candidate": leaked.candidate, "score": 1}) + "\n")
    changed, steps = run(recipe)
    assert {"silver-swap.jsonl", "student-swap-0"} <= set(steps)
    assert (leaked.context, leaked.candidate) not in {
        (row.context, row.candidate) for row in read_silver(changed.silver["swap"])
    }


@pytest.mark.parametrize(
    ("change", "computed", "cached"),
    [
        ("labelling.seeds=2", "labeller-1", "labeller-0"),
        ("labeller.training.epochs=2", "labeller-0", "student-gold-only-0"),
        ("student.training.learning_rate=0.1", "student-bm25-0", "labelled-bm25.jsonl"),
        ("sampling.pairs=3", "silver-bm25.jsonl", "noise.json"),
        ("students.seeds=2", "student-bm25-1", "student-bm25-0"),
    ],
)
def test_a_setting_affects_only_the_steps_that_depend_on_it(
    change: str, computed: str, cached: str, small_recipe: WriteRecipe
) -> None:
    recipe = small_recipe()
    run(recipe, 'sampling.samplers=["bm25"]')
    _, steps = run(recipe, 'sampling.samplers=["bm25"]', change)
    assert computed in steps
    assert cached not in steps


def test_another_backbone_of_the_same_name_retrains_the_students(
    small_recipe: WriteRecipe, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    recipe = small_recipe()
    backbone = tmp_path / "backbone"
    shutil.copytree(tiny_folder("bert"), backbone)
    settings = ['sampling.samplers=["bm25"]', f'student.model.source="{backbone}"']
    run(recipe, *settings)
    shutil.rmtree(backbone)
    make_folder(backbone, seed=5)
    _, steps = run(recipe, *settings)
    assert steps == ["student-gold-only-0", "student-bm25-0"]


def test_the_recipe_before_the_labellers_is_trained_once(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    folder = recipe.parent
    labeller = (folder / "cross.toml").read_text()
    (folder / "first.toml").write_text(labeller.replace("unused.jsonl", "first.jsonl"))
    (folder / "first.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in make_pairs(40, seed=9)))
    _, rest = labeller.split("[data.train]")
    (folder / "cross.toml").write_text(f'after = "first.toml"\n[data.train]{rest}')
    settings = ['sampling.samplers=["bm25"]', "labelling.seeds=2"]
    results, steps = run(recipe, *settings)
    source = json.loads((folder / "run/labeller-1/config.json").read_text())["model"]["source"]
    assert Path(source) == folder / "run/before-labeller/model"
    assert [step for step in steps if "labeller" in step] == ["before-labeller", "labeller-0", "labeller-1"]
    (folder / "first.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in make_pairs(40, seed=8)))
    _, steps = run(recipe, *settings)
    assert [step for step in steps if "labeller" in step] == ["before-labeller", "labeller-0", "labeller-1"]
    assert "student-gold-only-0" not in steps
    assert results.labellers


def test_another_teacher_of_the_same_name_retrains_the_labellers(
    small_recipe: WriteRecipe, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    recipe = small_recipe()
    folder, teacher = recipe.parent, tmp_path / "teacher"
    shutil.copytree(tiny_folder("bert"), teacher)
    labeller = (folder / "cross.toml").read_text()
    answers = [{"context": row["context"], "answer": row["candidate"]} for row in make_pairs(40, seed=9)]
    (folder / "first.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    first = labeller.replace('files = "unused.jsonl"', 'files = "first.jsonl"\nreader = "answers"')
    (folder / "first.toml").write_text(f'teacher = "{teacher}"\n{first.replace("max_score = 5", "")}')
    _, rest = labeller.split("[data.train]")
    (folder / "cross.toml").write_text(f'after = "first.toml"\n[data.train]{rest}')
    run(recipe, 'sampling.samplers=["bm25"]')
    shutil.rmtree(teacher)
    make_folder(teacher, seed=5)
    _, steps = run(recipe, 'sampling.samplers=["bm25"]')
    assert [step for step in steps if "labeller" in step] == ["before-labeller", "labeller-0"]


def test_an_invalid_row_is_named(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    results, _ = run(recipe, 'sampling.samplers=["bm25"]')
    results.silver["bm25"].write_text('{"context": "a"}\n')
    with pytest.raises(DataError, match=r"silver-bm25.jsonl, line 1: tercet did not write this row"):
        run(recipe, 'sampling.samplers=["bm25"]')


def test_a_result_with_unreadable_inputs_is_recomputed(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    run(recipe, 'sampling.samplers=["bm25"]')
    (recipe.parent / "run/silver-bm25.jsonl.from.json").write_text("")
    _, steps = run(recipe, 'sampling.samplers=["bm25"]')
    assert steps == ["silver-bm25.jsonl"]


def test_too_few_pairs_are_noted(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    results, _ = run(recipe, 'sampling.samplers=["bm25"]', "sampling.pairs=100000")
    assert len(results.notes) == 1
    assert "pairs instead of 100,000" in results.notes[0]
    assert "or raise top_k" in results.notes[0]


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(RECIPES.glob("augment-*.toml")) if "student" in read_toml(file)],
    ids=lambda file: file.stem,
)
def test_every_augment_recipe_parses(file: Path) -> None:
    assert read_augment_recipe(file).about


def test_a_recipe_whose_data_is_replaced_needs_none(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    for name in ("cross.toml", "student.toml"):
        file = recipe.parent / name
        file.write_text(file.read_text().replace('[data.train]\nfiles = "unused.jsonl"\n', ""))
        assert "data" not in file.read_text()
    read = read_augment_recipe(recipe)
    assert read.student.train == read.train
    results, _ = run(recipe, 'sampling.samplers=["random"]')
    assert list(results.students) == [GOLD_ONLY, "random"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            'labeller.model.activation="identity"',
            r'from 0 to 1, which only a sigmoid ensures, got activation = "identity" .*: set activation',
        ),
        ('labeller.model={kind="bi"}', 'a labeller must be a cross-encoder, got kind = "bi"'),
        ('student.model={kind="poly"}', "cosine cannot train a poly-encoder: change kind"),
    ],
)
def test_models_that_do_not_fit_are_refused_before_training(
    change: str, message: str, small_recipe: WriteRecipe
) -> None:
    assert_refused(small_recipe(), change, message)


def test_a_labeller_that_continues_a_model_without_a_sigmoid_is_refused(small_recipe: WriteRecipe) -> None:
    recipe = small_recipe()
    with pytest.raises(InputError, match=r'got activation = "identity" in cross: set activation = "sigmoid"'):
        run(recipe, 'labeller.model={source="cross"}')
    assert not list((recipe.parent / "run").glob("labeller*"))


def test_gold_scores_outside_the_range_name_both_ranges(small_recipe: WriteRecipe) -> None:
    changes = ("labeller.objective.max_score=1", "student.objective.max_score=1")
    with pytest.raises(DataError, match=r"from 0 to 1, got .: set min_score .* which is 0 to 5 here"):
        run(small_recipe(), *changes)


def test_gold_scores_that_cover_little_of_the_range_are_noted(small_recipe: WriteRecipe) -> None:
    changes = ("labeller.objective.max_score=100", "student.objective.max_score=100", "students.seeds=1")
    with pytest.warns(UserWarning, match=r"range from 0 to 5, and \[objective\] says 0 to 100"):
        run(small_recipe(), *changes, 'sampling.samplers=["random"]')


def test_labeller_and_student_may_be_tables(small_recipe: WriteRecipe, tiny_folder: FolderOf) -> None:
    recipe = small_recipe()
    text = recipe.read_text().replace('labeller = "cross.toml"', "").replace('student = "student.toml"', "")
    tables = "\n".join(f"[{part}.objective]\nmax_score = 5\n" for part in ("labeller", "student"))
    recipe.write_text(text + tables)
    read = read_augment_recipe(recipe, ["student.training.epochs=7"])
    assert read.labeller is not None
    assert (read.labeller.objective.kind, read.student.objective.kind) == ("bce", "cosine")
    assert read.labeller.model.config().activation == "sigmoid"
    assert read.student.training.epochs == 7
    with pytest.raises(InputError, match="after needs a recipe file"):
        read_augment_recipe(recipe, ['student.after="cross.toml"'])
