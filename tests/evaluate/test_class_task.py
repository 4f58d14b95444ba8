"""The task ``classes``: accuracy and macro F1 worked out by hand, and labels that models name otherwise."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

import tercet
from tercet.errors import DataError, InputError
from tercet.evaluate.baselines import TfIdf
from tercet.evaluate.metrics import best_other_class, macro_f1
from tercet.evaluate.model_names import ModelEntry
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.classes import ClassTask
from tercet.evaluate.tasks.load import load_task
from tercet.evaluate.tasks.pairs import Pairs
from tercet.scorers.pair_classifier import PairClassifier
from tercet.settings.shipped import shipped
from tercet.settings.tasks import TaskConfig, read_task

if TYPE_CHECKING:
    from tercet.records import Context, Floats

FolderOf = Callable[[str], Path]
NLI = ("entailment", "neutral", "contradiction")
ROWS = [
    ("the cat", "a dog", "neutral"),
    ("a dog", "a dog", "entailment"),
    ("never", "a dog", "contradiction"),
]


def written(path: Path, label: Callable[[str], Any] = str) -> str:
    rows = ({"context": one, "candidate": two, "score": label(name)} for one, two, name in ROWS)
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def task_of(labels: list[int], names: tuple[str, ...] = ()) -> ClassTask:
    texts: list[Context] = [f"context {number}" for number in range(len(labels))]
    return ClassTask("t", Pairs(texts, [str(text) for text in texts], np.array(labels, float)), names)


def metrics_of(task: ClassTask, values: list[list[float]]) -> dict[str, float]:
    result = task.of_values(np.array(values, dtype=np.float32), "model")
    return {name: result.sample(name).value for name in result.metrics}


def cross(folder: Path, labels: tuple[str, ...]) -> tercet.CrossEncoder:
    config = tercet.CrossConfig(num_labels=len(labels), labels=labels)
    return tercet.CrossEncoder.from_backbone(folder, config=config, device="cpu")


def test_accuracy_and_macro_f1_worked_out_by_hand() -> None:
    found = metrics_of(task_of([0, 0, 1, 2]), [[3, 1, 2], [1, 3, 2], [1, 3, 2], [1, 3, 2]])
    assert found["accuracy"] == 2 / 4
    # class 0: 1 of 2 found, none called so wrongly; class 1: found, 2 wrongly; class 2: never predicted
    assert found["macro F1"] == pytest.approx((2 / (2 + 1) + 2 / (2 + 2) + 0) / 3)


def test_macro_f1_equals_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    for classes in (2, 3, 7):
        labels, predicted = rng.integers(classes, size=(2, 40))
        assert macro_f1(predicted, labels) == pytest.approx(f1_score(labels, predicted, average="macro"))


def test_equal_values_for_all_classes_earn_nothing() -> None:
    assert metrics_of(task_of([0, 1, 2]), [[1, 1, 1]] * 3) == {"accuracy": 0, "macro F1": 0}


def test_the_best_other_class_is_never_the_label() -> None:
    values: Floats = np.array([[3, 1, 2], [1, 1, 0]], dtype=np.float32)
    assert best_other_class(values, np.array([0, 0])).tolist() == [2, 1]


def test_the_worst_case_is_the_one_with_the_largest_margin() -> None:
    task = task_of([0, 1], NLI[:2])
    result = task.of_values(np.array([[1, 2], [5, 1]], dtype=np.float32), "model")
    worst = result.worst(1)[0]
    assert (worst.context, worst.wanted, worst.got) == ("context 1", "neutral", "entailment for context 1")


def test_classes_are_matched_by_their_names_in_any_order_and_case(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    task = load_task(TaskConfig(name="t", kind="classes", files=(written(tmp_path / "a.jsonl"),), labels=NLI))
    scorer = cross(tiny_folder("bert"), ("Contradiction", "Entailment", "Neutral"))
    found = task.run(scorer, "model")
    values = scorer.classify([row[0] for row in ROWS], [row[1] for row in ROWS])
    names = [("contradiction", "entailment", "neutral")[number] for number in values.argmax(axis=1)]
    assert found.columns["right"].tolist() == [row[2] == name for row, name in zip(ROWS, names, strict=True)]


def test_a_bi_encoder_with_a_classifier_is_measured_and_compared(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    task = load_task(TaskConfig(name="t", kind="classes", files=(written(tmp_path / "a.jsonl"),), labels=NLI))
    bi = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    weights = np.random.default_rng(0).normal(size=(3, 48)).astype(np.float32)
    bi.classifier = PairClassifier(weights, ("u", "v", "difference"), NLI)
    bi.save(tmp_path / "bi")
    cross(tiny_folder("bert"), NLI).save(tmp_path / "cross")
    models = [ModelEntry(name, (str(tmp_path / name),)) for name in ("bi", "cross")]
    table = Evaluation(models, device="cpu").table(task)
    assert [list(row.estimates) for row in table.rows] == [["accuracy", "macro F1"]] * 2
    predicted = bi.classify([row[0] for row in ROWS], [row[1] for row in ROWS]).argmax(axis=1)
    expected = np.mean([NLI[number] == row[2] for number, row in zip(predicted, ROWS, strict=True)])
    assert table.rows[0].estimates["accuracy"].value == expected
    assert 0 <= table.verdicts["cross"].p <= 1


def test_without_labels_the_names_in_the_file_count_and_numbers_are_positions(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    named = load_task(read_task(f"classes:{written(tmp_path / 'named.jsonl')}"))
    numbered = load_task(read_task(f"classes:{written(tmp_path / 'numbers.jsonl', sorted(NLI).index)}"))
    assert isinstance(named, ClassTask)
    assert named.labels == tuple(sorted(NLI))
    scorer = cross(tiny_folder("bert"), tuple(sorted(NLI)))
    results = [task.run(scorer, "model").columns["right"].tolist() for task in (named, numbered)]
    assert results[0] == results[1]


def test_models_with_other_labels_or_without_classes_are_refused(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    task = load_task(read_task(f"classes:{written(tmp_path / 'a.jsonl')}"))
    folder = tiny_folder("bert")
    unnamed = tercet.CrossEncoder.from_backbone(folder, config=tercet.CrossConfig(num_labels=4), device="cpu")
    refused = [
        (
            cross(folder, ("yes", "no", "perhaps")),
            "and the model has yes, no, perhaps: they must be the same",
        ),
        (unnamed, "has 3 labels, and the model has 4 classes"),
        (tercet.CrossEncoder.from_backbone(folder, device="cpu"), "this scorer has no classes"),
        (tercet.BiEncoder.from_backbone(folder, device="cpu"), "trained with the objective softmax"),
        (TfIdf(), "this scorer has no classes"),
    ]
    for scorer, message in refused:
        with pytest.raises(InputError, match=message):
            task.check(scorer)


def test_labels_that_are_no_classes_are_refused() -> None:
    with pytest.raises(DataError, match=r"labels must be names or whole numbers from 0, got 0\.5"):
        task_of([0, 1]).__class__("t", Pairs(["a", "b"], ["a", "b"], np.array([0.5, 1])))
    with pytest.raises(InputError, match="at least 2 labels are needed"):
        task_of([1, 1])


@pytest.mark.parametrize("name", ["snli-dev", "mnli-dev", "klue-nli-dev", "kornli-dev"])
def test_the_nli_tasks_are_installed(name: str) -> None:
    assert name in shipped("tasks")
    assert read_task(f"task:{name}").labels == NLI
