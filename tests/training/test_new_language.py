"""A language added to a bi-encoder: runs of recipes with the objective translation."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.small_recipes import assert_same_model, run, write_rows
from tests.training.wordpiece_folder import ENGLISH, KOREAN, make_wordpiece_folder

import tercet
from tercet.data.sample import PARALLEL
from tercet.errors import DataError, InputError, ModelError
from tercet.records import Example
from tercet.settings.training import ObjectiveConfig
from tercet.training.objectives import make_objective
from tercet.training.reporter import Reporter
from tercet.training.teacher_vectors import TeacherVectors
from tercet.training.tokenized import TokenizedExample, tokenize

EXAMPLES = [Example(korean, (english,)) for english, korean in zip(ENGLISH, KOREAN, strict=True)]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bi-encoder whose matrices can be quantized: the rows are whole groups."""
    return make_wordpiece_folder(tmp_path_factory.mktemp("teacher") / "model", width=64)


def tables(base: Path, **parts: Any) -> dict[str, Any]:
    """A small recipe that adds Korean to a model."""
    train = {
        "files": f"sample:{PARALLEL}",
        "reader": "translations",
        "columns": {"source": "en", "target": "ko"},
    }
    defaults: dict[str, Any] = {
        "teacher": str(base),
        "model": {"source": str(base)},
        "data": {"train": train},
        "objective": {"kind": "translation"},
        "vocabulary": {"pieces": 600, "min_frequency": 2},
        "batches": {"batch_size": 16},
        "training": {"epochs": 3, "learning_rate": 1e-3, "dropout": 0.0},
    }
    return {**defaults, **parts}


def with_rows(teacher: Path, path: Path, rows: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    table = tables(teacher, **parts)
    table["data"]["train"]["files"] = write_rows(path / "rows.jsonl", rows)
    return table


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(axis=1) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))


@pytest.fixture(scope="module")
def trained(teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that learnt Korean by heart, and is also saved as an extension."""
    folder = tmp_path_factory.mktemp("korean") / "run"
    vocabulary = {"pieces": 600, "min_frequency": 2, "extension": True}
    training = {"epochs": 40, "learning_rate": 2e-3, "dropout": 0.0, "evals_per_epoch": 1}
    run(tables(teacher, vocabulary=vocabulary, training=training), folder)
    return folder


def batch_of(scorer: tercet.BiEncoder, teacher: Path, examples: list[Example]) -> list[TokenizedExample]:
    vectors = TeacherVectors(str(teacher), examples, student=scorer)
    return vectors.as_targets(examples, tokenize(scorer, examples))


def test_translations_learn_the_vectors_of_their_sources(teacher: Path, trained: Path) -> None:
    wanted = tercet.load(teacher, device="cpu").encode(ENGLISH)
    student = tercet.load(trained / "model", device="cpu")
    close = cosines(student.encode(KOREAN), wanted)
    others = cosines(student.encode(KOREAN), np.roll(wanted, 1, axis=0))
    assert np.median(close) > 0.8
    assert np.median(others) < 0.7


def test_sources_keep_their_vectors(teacher: Path, trained: Path) -> None:
    before, after = (tercet.load(each, device="cpu").encode(ENGLISH) for each in (teacher, trained / "model"))
    assert cosines(before, after).min() > 0.9


def test_word_vectors_of_the_base_are_not_trained(teacher: Path, trained: Path) -> None:
    before, after = (
        tercet.load(each, device="cpu").backbone.transformer.get_input_embeddings().weight
        for each in (teacher, trained / "model")
    )
    assert len(after) > len(before)
    assert torch.equal(after[: len(before)], before)


def test_an_extension_is_smaller_and_has_nearly_the_vectors_of_the_model(trained: Path) -> None:
    whole, small = (trained / name for name in ("model", "extension"))
    sizes = [sum(file.stat().st_size for file in each.glob("*.safetensors")) for each in (whole, small)]
    assert sizes[1] < sizes[0] / 3
    vectors = [tercet.load(each, device="cpu").encode([*ENGLISH, *KOREAN]) for each in (whole, small)]
    assert cosines(*vectors).min() > 0.98


def test_the_result_has_the_recall_of_held_out_sources(trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    assert result["dev"].keys() == {"examples", "recall_at_1", "mrr"}
    assert result["dev"]["mrr"] > result["untrained"]["mrr"] - 0.2


def test_an_interrupted_run_resumes_with_the_same_result(teacher: Path, tmp_path: Path) -> None:
    table = tables(teacher, training={"epochs": 2, "learning_rate": 1e-3, "evals_per_epoch": 2})
    run(table, tmp_path / "whole")

    def stop(step: int, *_: object) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(table, tmp_path / "parts", reporter=Reporter(progress=stop))
    run(table, tmp_path / "parts", resume=True)
    assert_same_model(tmp_path / "whole" / "model", tmp_path / "parts" / "model")


def test_without_new_pieces_the_tokenizer_stays(teacher: Path, tmp_path: Path) -> None:
    table = tables(teacher, training={"epochs": 1})
    del table["vocabulary"]
    with pytest.warns(tercet.errors.UnreadableTextWarning, match="cannot read Hangul"):
        run(table, tmp_path / "run")
    before, after = (tercet.load(each, device="cpu") for each in (teacher, tmp_path / "run" / "model"))
    assert after.tokenizer.bare_ids(ENGLISH) == before.tokenizer.bare_ids(ENGLISH)
    assert after.backbone.vocabulary == before.backbone.vocabulary


def test_the_loss_is_that_of_its_formula(teacher: Path, tmp_path: Path) -> None:
    scorer = tercet.BiEncoder.from_backbone(make_wordpiece_folder(tmp_path / "student", width=64, seed=1))
    config = ObjectiveConfig(kind="translation", cosine_weight=2.0, softmax_weight=3.0, source_weight=0.5)
    examples = [
        Example(context, (english,)) for context, english in zip(ENGLISH[3:6], ENGLISH[:3], strict=True)
    ]
    scorer.eval()
    found = make_objective(config, scorer)(scorer, batch_of(scorer, teacher, examples))
    wanted = tercet.load(teacher, device="cpu").encode(ENGLISH[:3], normalize=True)
    contexts = scorer.encode(ENGLISH[3:6], normalize=True)
    sources = scorer.encode(ENGLISH[:3], normalize=True)
    softmax = -torch.from_numpy(20 * contexts @ wanted.T).log_softmax(dim=1).diagonal().mean()
    expected = (
        2 * (1 - (contexts * wanted).sum(axis=1)).mean()
        + 3 * float(softmax)
        + 0.5 * (1 - (sources * wanted).sum(axis=1)).mean()
    )
    assert float(found.detach()) == pytest.approx(float(expected), rel=1e-4)


def test_a_source_that_says_the_same_is_no_negative(teacher: Path) -> None:
    scorer = tercet.load(teacher, device="cpu")
    config = ObjectiveConfig(kind="translation", cosine_weight=0.0, softmax_weight=1.0, source_weight=0.0)
    same = [Example(text, (ENGLISH[0],)) for text in ENGLISH[1:3]]
    loss = make_objective(config, scorer)(scorer, batch_of(scorer, teacher, same))
    assert float(loss) == pytest.approx(0.0, abs=1e-6)


def test_a_single_dev_row_has_a_loss(teacher: Path) -> None:
    scorer = tercet.load(teacher, device="cpu")
    objective = make_objective(ObjectiveConfig(kind="translation"), scorer)
    assert float(objective(scorer, batch_of(scorer, teacher, EXAMPLES[:1]))) > 0


def test_equal_sources_share_one_vector(teacher: Path) -> None:
    scorer = tercet.load(teacher, device="cpu")
    same = [EXAMPLES[0], replace(EXAMPLES[1], candidates=EXAMPLES[0].candidates)]
    first, second = batch_of(scorer, teacher, same)
    assert first.targets is second.targets
    wanted = scorer.encode(ENGLISH[:1], normalize=True)[0]
    assert np.asarray(first.targets) == pytest.approx(wanted, abs=1e-6)


def refused(table: dict[str, Any], folder: Path, message: str, kind: type[Exception] = InputError) -> None:
    with pytest.raises(kind, match=message):
        run(table, folder)
    assert not (folder / "checkpoints").exists()


def test_a_file_without_the_columns_is_refused(teacher: Path, tmp_path: Path) -> None:
    table = with_rows(teacher, tmp_path, [{"en": "a", "fr": "b"}])
    refused(
        table,
        tmp_path / "run",
        "rows.jsonl, line 1: column 'ko' is missing; the columns are 'en', 'fr'",
        DataError,
    )


@pytest.mark.parametrize("empty", ["", None, "  "])
def test_an_empty_side_is_refused(teacher: Path, tmp_path: Path, empty: object) -> None:
    rows = [{"en": "a river", "ko": "강"}, {"en": "a house", "ko": empty}]
    refused(with_rows(teacher, tmp_path, rows), tmp_path / "run", "line 2", DataError)


def test_the_same_text_on_both_sides_is_refused(teacher: Path, tmp_path: Path) -> None:
    rows = [{"en": text, "ko": text.upper()} for text in ENGLISH]
    message = r"\d+ of \d+ rows have the same text as source and as target, the first at .*rows.jsonl, line"
    refused(with_rows(teacher, tmp_path, rows), tmp_path / "run", message, DataError)


def test_a_column_of_few_different_sources_is_refused(teacher: Path, tmp_path: Path) -> None:
    rows = [{"en": "tatoeba", "ko": text} for text in KOREAN]
    message = r"54 rows have only 1 different sources, such as 'tatoeba': name the column with the texts"
    refused(with_rows(teacher, tmp_path, rows), tmp_path / "run", message, DataError)


def test_a_few_rows_with_the_same_text_on_both_sides_are_kept(teacher: Path, tmp_path: Path) -> None:
    rows = [{"en": en, "ko": ko} for en, ko in zip(ENGLISH, KOREAN, strict=True)] + [{"en": "OK", "ko": "OK"}]
    run(with_rows(teacher, tmp_path, rows, training={"epochs": 1}), tmp_path / "run")
    assert (tmp_path / "run" / "model").is_dir()


def test_one_pair_is_refused(teacher: Path, tmp_path: Path) -> None:
    rows = [{"en": "a river", "ko": "강"}]
    refused(with_rows(teacher, tmp_path, rows), tmp_path / "run", "too few examples to hold out dev data, 1")


def test_other_readers_are_refused(teacher: Path, tmp_path: Path) -> None:
    data = {"train": {"files": "sample:pairs.ko"}}
    message = 'learns from a text and its translation: set reader = "translations"'
    refused(tables(teacher, data=data), tmp_path / "run", message, DataError)


def test_a_language_that_the_teacher_reads_is_refused(teacher: Path, tmp_path: Path) -> None:
    rows = [{"en": text, "ko": text[::-1]} for text in ENGLISH]
    message = (
        r"reads the translations already .* train without new pieces \(remove \[vocabulary\], --pieces 0\)"
    )
    refused(with_rows(teacher, tmp_path, rows), tmp_path / "run", message)


def test_a_teacher_without_wordpiece_is_refused(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    refused(tables(tiny_folder("roberta")), tmp_path / "run", "need a WordPiece tokenizer")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"teacher": []}, "translation learns the vectors of one teacher"),
        ({"teacher": ["bi", "bi-ko"]}, "translation learns the vectors of one teacher"),
        ({"teacher_lexical_weight": 0.5}, "and no teacher_lexical_weight"),
        (
            {"objective": {"kind": "in_batch"}},
            r"\[vocabulary\] needs the objective translation, got in_batch",
        ),
        ({"vocabulary": {"pieces": 0}}, r"\[vocabulary\]: pieces must be at least 1, got 0"),
        ({"vocabulary": {"piece": 9}}, "unknown setting 'piece'; known settings: pieces"),
        ({"adapter": {}}, r"adapters freeze new word pieces: remove \[adapter\] or \[vocabulary\]"),
        ({"batches": {"batch_size": 1}}, "a batch of 1 has none: set batch_size to at least 2"),
        ({"batches": {"negatives": 3}}, "translation cannot use random negatives"),
        ({"objective": {"kind": "translation", "source_weight": -1}}, "source_weight must be 0 or a number"),
        ({"training": {"vocabulary_learning_rate": -1.0}}, "vocabulary_learning_rate must be at least 0"),
        ({"model": {"kind": "poly", "source": "bi"}}, "translation cannot train a poly-encoder"),
        (
            {"model": {"kind": "bi", "source": "bi", "towers": 2}},
            "translation trains a bi-encoder with one tower",
        ),
        ({"model": {"kind": "bi", "source": "bi", "similarity": "dot"}}, "and cosine similarity"),
        ({"teacher": "cross"}, "the teacher of translations must be a bi-encoder, got a cross-encoder"),
        ({"teacher": "bi"}, "bi has vectors of 384 dimensions, and the model has 64"),
    ],
)
def test_wrong_settings_are_refused_before_training(
    teacher: Path, tmp_path: Path, parts: dict[str, Any], message: str
) -> None:
    refused(tables(teacher, **parts), tmp_path / "run", message)


def test_an_extension_of_an_extension_is_refused_before_training(teacher: Path, tmp_path: Path) -> None:
    model, vocabulary = {"source": "bi-ko"}, {"extension": True}
    table = tables(teacher, teacher="bi-ko", model=model, vocabulary=vocabulary)
    refused(table, tmp_path / "run", "bi-ko is an extension itself, and cannot be the base of another")


def test_a_teacher_with_nan_is_refused(teacher: Path, tmp_path: Path) -> None:
    scorer = tercet.load(teacher, device="cpu")
    with torch.no_grad():
        scorer.backbone.transformer.get_input_embeddings().weight[7] = torch.nan
    broken = scorer.save(tmp_path / "broken")
    refused(tables(broken), tmp_path / "run", "weights that are NaN or infinite", ModelError)
