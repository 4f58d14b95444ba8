"""``tercet distill``: from a file of parallel text to a model that reads another language."""

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import assert_fails, assert_refused
from tests.cli.command import tercet as tercet_cli
from tests.training.wordpiece_folder import ENGLISH, KOREAN, make_wordpiece_folder

import tercet

COLUMNS = ("--column", "source=en", "--column", "target=ko")
FAST = ("--set", "training.epochs=1", "--set", "batches.batch_size=16")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wordpiece_folder(tmp_path_factory.mktemp("teacher") / "model", width=64)


def distill(teacher: Path, *words: str, out: Path) -> Any:
    with chdir(out.parent):
        return tercet_cli("distill", str(teacher), *words, "-o", str(out))


def test_a_language_is_added_from_a_file(teacher: Path, tmp_path: Path) -> None:
    done = distill(teacher, "sample:parallel.en-ko", *COLUMNS, *FAST, "--extension", out=tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / 'run'}: dev before training recall_at_1")
    assert "learning word pieces" in done.stderr
    assert "training a bi-encoder on 54 examples" in done.stderr
    for name in ("model", "extension"):
        student = tercet.load(tmp_path / "run" / name, device="cpu")
        assert not any(span.unknown for span in student.tokenizer.spans("오늘 아침"))


def test_columns_are_recognized_by_their_names(teacher: Path, tmp_path: Path) -> None:
    rows = [f"{korean}\t{english}" for english, korean in zip(ENGLISH, KOREAN, strict=True)]
    (tmp_path / "my.tsv").write_text("\n".join(["Translation\tSource", *rows]))
    done = distill(teacher, "my.tsv", *FAST, "--pieces", "300", "--seed", "3", out=tmp_path / "run")
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["train"]["columns"] == {"source": "Source", "target": "Translation"}
    assert config["vocabulary"]["pieces"] == 300
    assert (config["model"]["seed"], config["training"]["seed"]) == (3, 3)


def test_a_run_is_resumed_and_other_settings_are_refused(teacher: Path, tmp_path: Path) -> None:
    words = ("sample:parallel.en-ko", *COLUMNS, *FAST)
    first = distill(teacher, *words, out=tmp_path / "run")
    again = distill(teacher, *words, "--resume", out=tmp_path / "run")
    assert again.stdout == first.stdout
    other = distill(teacher, *words, "--resume", "--pieces", "9", out=tmp_path / "run")
    assert_fails(other, "was started with other settings (vocabulary.pieces)")
    assert_fails(distill(teacher, *words, out=tmp_path / "run"), "exists: choose another folder")


def test_pieces_of_0_keep_the_vocabulary(teacher: Path, tmp_path: Path) -> None:
    words = ("sample:parallel.en-ko", "--column", "source=en", "--column", "target=ko", "--pieces", "0")
    done = distill(teacher, *words, *FAST, out=tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["vocabulary"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["sample:parallel.en-ko"],
            "has the columns 'en', 'ko', and the names and values fit no reader: say",
        ),
        (["sample:parallel.en-ko", "--column", "target=fr"], "has no column 'fr', only 'en', 'ko'"),
        (["sample:parallel.en-ko", "--column", "target=en", "--column", "source=en"], "fit no reader"),
        (["missing.csv"], "missing.csv"),
        (["-"], "the file is read twice, and standard input cannot be"),
        (["sample:parallel.en-ko", *COLUMNS, "--pieces", "0", "--extension"], "--extension needs new word"),
        (["sample:parallel.en-ko", *COLUMNS, "--set", "vocabulary.piece=3"], "unknown setting 'piece'"),
    ],
)
def test_mistakes_are_explained(teacher: Path, tmp_path: Path, words: list[str], message: str) -> None:
    assert_fails(distill(teacher, *words, out=tmp_path / "run"), message)
    assert not (tmp_path / "run").exists()


def test_wrong_usage_is_refused(tmp_path: Path) -> None:
    assert_refused(tercet_cli("distill", "bi", "sample:parallel.en-ko"), "Missing option '--out'")
    done = tercet_cli("distill", "bi", "sample:parallel.en-ko", "-o", str(tmp_path / "run"), "--pieces", "-1")
    assert_refused(done, "--pieces")


def test_a_recipe_for_translations_is_asked_from_distill(tmp_path: Path) -> None:
    rows = [f"{english}\t{korean}" for english, korean in zip(ENGLISH, KOREAN, strict=True)]
    (tmp_path / "my.tsv").write_text("\n".join(["source\ttarget", *rows]))
    done = tercet_cli("new-recipe", "bi", "--data", str(tmp_path / "my.tsv"))
    assert_fails(done, 'translations are learnt from a teacher: run "tercet distill bi')
