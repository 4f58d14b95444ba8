"""Distillation: the scores of teachers become the targets of training and dev data."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import SENTENCES
from tests.training.small_recipes import FolderOf, run, tables, write_rows

import tercet
from tercet.errors import InputError, ModelError
from tercet.records import Example
from tercet.settings.recipe import make_recipe
from tercet.training.lexical_overlap import LexicalOverlap
from tercet.training.reporter import Reporter
from tercet.training.splits import DataSplits
from tercet.training.teacher import with_scores, with_teacher_scores

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")


def teach(splits: DataSplits, teacher: str | list[str], **parts: Any) -> DataSplits:
    """The splits with the scores of teachers; the objective is KL divergence unless another one is given."""
    table = tables(Path("unused"), **{"objective": {"kind": "kl_divergence"}, "teacher": teacher, **parts})
    return with_teacher_scores(splits, make_recipe(table, name="test"), device="cpu")


def test_a_teacher_provides_the_targets(tiny_folder: FolderOf, tmp_path: Path) -> None:
    negatives = [
        {"context": f"the cat {n}", "answer": "a dog ran", "negatives": ["old house", "bread and water"]}
        for n in "abcdefgh"
    ]
    train = {
        "files": write_rows(tmp_path / "rows.jsonl", negatives),
        "reader": "answers",
        "columns": {"negatives": "negatives"},
    }
    row = {"context": "a river", "answer": "new river", "negatives": ["never", "old tree"]}
    dev = train | {"files": write_rows(tmp_path / "dev.jsonl", [row])}
    teacher = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu").save(tmp_path / "teacher")
    table = tables(
        tiny_folder("bert"),
        model={"kind": "poly", "source": str(tiny_folder("bert")), "codes": 3},
        teacher=str(teacher),
        data={"train": train, "dev": dev},
        objective={"kind": "margin_mse"},
        batches={"batch_size": 4},
    )
    result = run(table, tmp_path / "run")
    assert result["dev"]["examples"] == 1


@pytest.mark.parametrize("reader", ["choices", "answers"])
def test_test_data_of_a_student_needs_no_teacher_scores(
    tiny_folder: FolderOf, tmp_path: Path, reader: str
) -> None:
    row = {"context": "a river", "candidates": ["never", "new river"], "label": 1, "answer": "new river"}
    test = {"files": write_rows(tmp_path / "test.jsonl", [row]), "reader": reader}
    table = tables(
        tiny_folder("bert"),
        teacher=str(tiny_folder("bert")),
        objective={"kind": "kl_divergence"},
        batches={"batch_size": 16, "negatives": 3},
        training={"epochs": 1},
    )
    result = run({**table, "data": {**table["data"], "test": test}}, tmp_path / "run")
    assert result["test"]["examples"] == 1
    assert len(result["ranks"]) == 1


def test_an_objective_of_pairs_gets_one_teacher_score_per_candidate(tiny_folder: FolderOf) -> None:
    train = [Example("a cat", ("a dog ran", "old house")), Example("a river", ("the sea",))]
    splits = DataSplits(train, dev=[Example("a tree", ("bread", "water"))], test=[])
    objective = {"kind": "cosine", "min_score": -1}
    found = teach(splits, str(tiny_folder("bert")), objective=objective)
    pairs = [(example.context, *example.candidates) for example in found.train]
    assert pairs == [("a cat", "a dog ran"), ("a cat", "old house"), ("a river", "the sea")]
    assert [len(example.targets) for example in (*found.train, *found.dev)] == [1] * 5


def test_a_teacher_scores_random_negatives_too(tiny_folder: FolderOf) -> None:
    texts = ["the cat", "a dog ran", "old house", "bread", "water"]
    train = [Example("a river", (text,)) for text in texts]
    splits = DataSplits(train, dev=train, test=[])
    objective, batches = {"kind": "margin_mse"}, {"negatives": 3}
    teach_with = partial(teach, teacher=str(tiny_folder("bert")), objective=objective)
    found = teach_with(splits, batches=batches)
    for example, before in zip(found.train, train, strict=True):
        assert example.candidates[0] == before.candidates[0]
        assert len(set(example.candidates)) == len(example.targets) == 4
    choices = DataSplits(train, dev=[Example("a river", ("water", "bread"))], test=[])
    dev = teach_with(choices, batches=batches).dev
    assert [example.candidates for example in dev] == [("water", "bread")]
    assert teach_with(splits, batches=batches) == found
    with pytest.raises(InputError, match="cannot draw 5 negatives from 5 different answers"):
        teach_with(splits, batches={"negatives": 5})


def test_teacher_scores_are_clipped_to_the_limits(tiny: tercet.BiEncoder) -> None:
    examples = [Example(SENTENCES[0], tuple(SENTENCES)), Example(SENTENCES[1], (SENTENCES[1],))]
    found = with_scores(tiny.score_pairs, examples, (0.2, 0.7))
    assert [len(example.targets) for example in found] == [len(SENTENCES), 1]
    wanted = tiny.score(SENTENCES[0], SENTENCES).clip(0.2, 0.7)
    assert found[0].targets == pytest.approx(wanted, abs=1e-6)
    assert found[1].targets == pytest.approx((0.7,))


def test_several_teachers_are_averaged(tiny_folder: FolderOf) -> None:
    examples = [Example("the cat", ("the dog", "a cat", "old bread"))]
    splits = DataSplits(examples, dev=examples, test=[])
    both = [str(tiny_folder(architecture)) for architecture in ("bert", "roberta")]
    first, second = (np.array(teach(splits, each).train[0].targets) for each in both)
    assert teach(splits, both).train[0].targets == pytest.approx((first + second) / 2)
    assert np.abs(first - second).max() > 0.01


def test_several_teachers_need_scores_of_one_range(tiny_folder: FolderOf, tmp_path: Path) -> None:
    poly = tercet.PolyEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.PolyConfig(codes=4, similarity="dot"), device="cpu"
    )
    teachers = [str(tiny_folder("bert")), str(poly.save(tmp_path / "poly"))]
    examples = [Example("the cat", ("the dog", "a cat"))]
    with pytest.raises(InputError, match="several teachers need scores from -1 to 1"):
        teach(DataSplits(examples, dev=examples, test=[]), teachers)


def test_a_missing_teacher_is_an_error_before_training(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), teacher=str(tmp_path / "nobody"))
    with pytest.raises(ModelError, match=r"there is no folder .*nobody"):
        run(table, tmp_path / "run")


def test_a_missing_base_model_is_an_error_before_the_teacher_scores(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    reports: list[str] = []
    table = tables(tmp_path / "nobody", teacher=str(tiny_folder("bert")))
    with pytest.raises(ModelError, match=r"there is no folder .*nobody"):
        run(table, tmp_path / "run", reporter=Reporter(report=reports.append))
    assert reports == ["reading data"]


def test_teacher_lexical_weight_averages_overlap_and_scores(tiny_folder: FolderOf) -> None:
    examples = [Example("the cat", ("the dog", "a cat", "old bread"))]
    splits = DataSplits(examples, dev=examples, test=[])
    teach_with = partial(teach, splits, str(tiny_folder("bert")))
    shares = LexicalOverlap(["the cat", "the dog", "a cat", "old bread"]).of_contexts(
        ["the cat"] * 3, ["the dog", "a cat", "old bread"]
    )
    alone = np.array(teach_with().train[0].targets)
    mixed = np.array(teach_with(teacher_lexical_weight=0.5).dev[0].targets)
    assert mixed == pytest.approx((alone + 0.5 * shares) / 1.5)
    data = {"train": {"files": "unused", "both_directions": True}}
    undirected = np.array(teach_with(teacher_lexical_weight=0.5, data=data).train[0].targets)
    assert undirected[:2] == pytest.approx(mixed[:2], abs=0.2)
    assert undirected[1] != mixed[1]  # "a cat" contains a word that "the cat" does not


def test_teacher_lexical_weight_needs_scores_of_one_range(tiny_folder: FolderOf, tmp_path: Path) -> None:
    poly = tercet.PolyEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.PolyConfig(codes=4, similarity="dot"), device="cpu"
    )
    poly.save(tmp_path / "poly")
    examples = [Example("the cat", ("the dog", "a cat"))]
    splits = DataSplits(examples, dev=examples, test=[])
    with pytest.raises(InputError, match="teacher_lexical_weight needs scores from -1 to 1"):
        teach(splits, str(tmp_path / "poly"), teacher_lexical_weight=0.3)


def test_a_teacher_whose_scores_exceed_the_range_is_refused_before_training(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    """The packaged cross-encoder has logits; clipped to 0 to 1 they would lose their order."""
    table = tables(
        tiny_folder("bert"),
        model={"kind": "cross", "source": str(tiny_folder("bert")), "activation": "sigmoid"},
        teacher="cross",
        objective={"kind": "bce"},
        data={"train": {"files": "sample:faq.en", "reader": "answers", "limit": 30}},
    )
    message = r"the teacher's scores range from .* to .*, and the objective's from 0 to 1: set min_score"
    with pytest.raises(InputError, match=message):
        run(table, tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()
