"""The commands around training, as a user types them."""

import json
from contextlib import chdir
from pathlib import Path

import pytest
from tests.cli import command

import tercet

ROOT = Path(__file__).parent.parent.parent


def tercet_cli(*words: str, cwd: Path | None = None, status: int = 0) -> tuple[str, str]:
    with chdir(cwd or Path.cwd()):
        done = command.tercet(*words)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_training_by_a_recipe_with_changes(tmp_path: Path) -> None:
    recipe = ROOT / "recipes" / "bi-sample.toml"
    changes = ["--set", "training.epochs=1", "--set", "data.train.limit=40", "--seed", "3"]
    out, said = tercet_cli("train", str(recipe), *changes, cwd=tmp_path)
    assert out.startswith("runs/bi-sample: dev before training recall_at_1")
    assert "training a bi-encoder on 36 examples" in said
    assert "dev loss" in said
    config = json.loads((tmp_path / "runs" / "bi-sample" / "config.json").read_text())
    assert (config["training"]["seed"], config["batches"]["seed"], config["training"]["epochs"]) == (3, 3, 1)
    assert tercet.load(tmp_path / "runs" / "bi-sample" / "model").kind == "bi"


def test_a_summary_for_people_and_for_programs() -> None:
    out, _ = tercet_cli("data", "summary", "sample:pairs.en", "--model", "bi")
    assert "examples 120" in out
    assert "truncated by the model  contexts 0.0%" in out
    out, _ = tercet_cli("data", "summary", "sample:faq.ko", "--reader", "answers", "--json")
    assert json.loads(out)["contexts"]["count"] == 100


def test_a_summary_counts_what_test_data_shares(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("q,a\nOne?,Yes.\n")
    (tmp_path / "train.csv").write_text("q,a\nOne?,Yes.\nTwo?,No.\n")
    words = ["--reader", "answers", "--column", "context=q", "--column", "answer=a", "--json"]
    out, _ = tercet_cli("data", "summary", "train.csv", *words, "--test", "test.csv", "--data", str(tmp_path))
    assert json.loads(out)["shared with test"] == 1


def test_hard_negatives_can_be_trained_on(tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="needs tercet[lexical]")
    out, _ = tercet_cli(
        "data", "negatives", "sample:faq.en", "-o", "hard.jsonl", "--count", "2", cwd=tmp_path
    )
    assert out == "hard.jsonl: 120 examples\n"
    rows = [json.loads(line) for line in (tmp_path / "hard.jsonl").read_text().splitlines()]
    assert rows[0].keys() == {"context", "answer", "negatives"}
    assert sum(len(row["negatives"]) for row in rows) > 200
    out, _ = tercet_cli(
        "data",
        "summary",
        "hard.jsonl",
        "--reader",
        "answers",
        "--column",
        "negatives=negatives",
        "--json",
        cwd=tmp_path,
    )
    assert json.loads(out)["candidates per example"]["3"] > 100
    _, said = tercet_cli("data", "negatives", "sample:faq.en", "-o", "hard.jsonl", cwd=tmp_path, status=1)
    assert "hard.jsonl exists" in said


def test_examples_without_hard_negatives_are_counted(tmp_path: Path) -> None:
    words = ["data", "negatives", "sample:faq.en", "--by", "model", "-o", "hard.jsonl"]
    _, said = tercet_cli(*words, "--depth", "3", "--count", "2", cwd=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "hard.jsonl").read_text().splitlines()]
    few, none = (sum(len(row["negatives"]) < least for row in rows) for least in (2, 1))
    assert 0 < none < few
    assert f"{few} examples have fewer than 2 negatives ({none} have none): raise --depth" in said
    _, said = tercet_cli(*words, "--depth", "3", "--count", "1", "--overwrite", cwd=tmp_path)
    assert f"{none} examples have no negatives: raise --depth" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "missing.toml"], "recipe missing.toml does not exist"),
        (["data", "summary", "missing.jsonl"], "missing.jsonl"),
        (["data", "summary", "sample:pairs.en", "--column", "context"], "--column must be ROLE=NAME"),
        (["pretrain", "missing.toml"], "recipe missing.toml does not exist"),
    ],
)
def test_mistakes_are_explained_in_one_line(words: list[str], message: str, tmp_path: Path) -> None:
    _, said = tercet_cli(*words, cwd=tmp_path, status=1)
    assert message in said


def test_an_unknown_reader_is_refused() -> None:
    result = command.tercet("data", "summary", "sample:pairs.en", "--reader", "poems")
    command.assert_refused(result, "'poems' is not one of 'pairs', 'triplets'")


def test_an_invalid_recipe_is_reported_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch was loaded')")
    (tmp_path / "broken.toml").write_text("[model")
    for name, message in (
        ("missing.toml", "does not exist"),
        ("broken.toml", "is not valid TOML"),
        (".", ": Is a"),
    ):
        environment = {"PYTHONPATH": str(tmp_path)}
        done = command.tercet_process("train", str(tmp_path / name), environment=environment)
        command.assert_fails(done, message)


def test_a_recipe_may_come_through_a_pipe(tmp_path: Path) -> None:
    recipe = (ROOT / "recipes" / "bi-sample.toml").read_text()
    words = ("train", "/dev/stdin", "--set", "data.train.limit=0", "-o", str(tmp_path / "run"))
    command.assert_fails(command.tercet_process(*words, stdin=recipe), "limit must be")


def test_pretraining_makes_a_backbone(tmp_path: Path) -> None:
    recipe = ROOT / "recipes" / "pretrain-sample.toml"
    out, _ = tercet_cli("pretrain", str(recipe), "--set", "training.epochs=1", "-o", "run", cwd=tmp_path)
    assert out.startswith("run: ")
    tercet_cli("new", "poly", "my-poly", "--backbone", "run/model", "--codes", "4", cwd=tmp_path)
    assert tercet.load(tmp_path / "my-poly").kind == "poly"
