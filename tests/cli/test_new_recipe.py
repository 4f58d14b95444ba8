"""``tercet new-recipe``: from the user's file to a model, with nothing to edit."""

import json
import tomllib
from contextlib import chdir
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import assert_fails, tercet
from tests.conftest import WORDS

from tercet.data.readers import read_examples
from tercet.settings.models import SCORER_CONFIGS
from tercet.settings.recipe import read_recipe
from tercet.settings.training import BatchConfig, TrainingConfig

FAST = ("--set", "training.epochs=1", "--set", "batches.batch_size=8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of one's own: answers, scores and labels."""
    texts = [f"{word} and {other}" for word, other in pairwise(WORDS)][:24]
    labels = ("no", "yes")
    with_scores = [f"{text},{text[::-1]},{number % 6}" for number, text in enumerate(texts)]
    with_labels = [f"{text},{text[::-1]},{labels[number % 2]}" for number, text in enumerate(texts)]
    answers = [f"{text},about {text}" for text in texts]
    for name, header, lines in (
        ("faq", "question,reply", answers),
        ("sts", "text_a,text_b,score", with_scores),
        ("nli", "premise,hypothesis,label", with_labels),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    return tmp_path


def run(folder: Path, *words: str) -> Any:
    with chdir(folder):
        return tercet(*words)


@pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")
@pytest.mark.parametrize(
    ("kind", "data", "objective"),
    [
        ("bi", "faq", "in_batch"),
        ("poly", "faq", "in_batch"),
        ("cross", "faq", "listwise"),
        ("bi", "sts", "cosine"),
        ("cross", "sts", "bce"),
        ("bi", "nli", "softmax"),
        ("cross", "nli", "cross_entropy"),
    ],
)
def test_a_new_recipe_trains_as_it_is(
    kind: Any, data: str, objective: str, folder: Path, tiny_folder: Any
) -> None:
    made = run(folder, "new-recipe", kind, "--data", f"{data}.csv", "--source", str(tiny_folder("bert")))
    assert made.returncode == 0, made.stderr
    assert made.stdout.endswith(f"next: tercet train {kind}-{data}.toml\n")
    assert read_recipe(folder / f"{kind}-{data}.toml").objective.kind == objective
    codes = ("--set", "model.codes=4") if kind == "poly" else ()  # the tiny encoder reads few tokens
    trained = run(folder, "train", f"{kind}-{data}.toml", *FAST, *codes)
    assert trained.returncode == 0, trained.stderr
    assert (folder / "runs" / f"{kind}-{data}" / "model").is_dir()


def test_a_new_recipe_contains_every_setting_and_its_default(folder: Path) -> None:
    assert run(folder, "new-recipe", "poly", "--data", "faq.csv", "-o", "mine.toml").returncode == 0
    text = (folder / "mine.toml").read_text()
    for settings in (SCORER_CONFIGS["poly"], BatchConfig, TrainingConfig):
        for name in settings.__dataclass_fields__:
            assert f"\n{name} = " in text or f"\n# {name} =" in text, name
    table = tomllib.loads(text)
    assert table["model"]["candidate_scale"] == 10
    assert table["data"]["train"]["columns"] == {"context": "question", "answer": "reply"}
    assert "# Number of codes per context" in text
    assert "margin" not in table["objective"]  # a setting of another objective


def test_scores_set_the_range_of_the_objective(folder: Path) -> None:
    assert run(folder, "new-recipe", "bi", "--data", "sts.csv").returncode == 0
    objective = read_recipe(folder / "bi-sts.toml").objective
    assert (objective.min_score, objective.max_score) == (0, 5)


def test_quotes_and_line_breaks_in_names_survive(folder: Path) -> None:
    row = {'my "question"\n': "when", "it's answer": "now"}
    (folder / "odd.jsonl").write_text((json.dumps(row) + "\n") * 20)
    names = ("--column", 'context=my "question"\n', "--column", "answer=it's answer")
    assert run(folder, "new-recipe", "bi", "--data", "odd.jsonl", *names).returncode == 0
    columns = read_recipe(folder / "bi-odd.toml").train.columns
    assert columns == {"context": 'my "question"\n', "answer": "it's answer"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("poly", "--data", "sts.csv"), "a poly-encoder cannot learn from pairs"),
        (("bi", "--data", "none.csv"), "there is no file none.csv"),
        (("bi", "--data", "few.csv"), "few.csv must have at least 20 rows for training and dev data, got 1"),
        (("bi", "--data", "faq.csv", "-o", "faq.csv"), "faq.csv"),
        (("bi", "--data", "faq.csv", "--column", "context"), "--column must be ROLE=NAME"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(words: tuple[str, ...], message: str, folder: Path) -> None:
    (folder / "few.csv").write_text("question,answer\na,b\n")
    before = (folder / "faq.csv").read_text()
    assert_fails(run(folder, "new-recipe", *words), message)
    assert (folder / "faq.csv").read_text() == before
    assert not list(folder.glob("*.toml"))


def test_the_delimiter_and_the_encoding_are_part_of_the_recipe(tmp_path: Path) -> None:
    file, recipe = tmp_path / "faq.csv", tmp_path / "faq.toml"
    lines = ["question/answer", *(f"질문 {n}/답변 {n}" for n in range(30))]
    file.write_bytes("\n".join(lines).encode("cp949"))
    options = "--encoding", "cp949", "--delimiter", "/"
    done = tercet("new-recipe", "bi", "--data", str(file), *options, "-o", str(recipe))
    assert done.returncode == 0, done.stderr
    data = tomllib.loads(recipe.read_text())["data"]["train"]
    assert (data["encoding"], data["delimiter"]) == ("cp949", "/")
    assert len(read_examples(read_recipe(recipe).train)) == 30
