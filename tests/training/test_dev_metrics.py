"""Metrics during training: what a cross-encoder's answers are ranked among."""

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import WORDS
from tests.training.small_recipes import FolderOf, run, tables, write_rows

from tercet.records import Example
from tercet.training.dev_metrics import with_sampled_candidates

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")

ANSWERS = [f"answer {number}" for number in range(30)]


def test_answers_are_ranked_among_ten_candidates() -> None:
    examples = [Example("question", (answer,)) for answer in ANSWERS]
    sampled = with_sampled_candidates(examples)
    assert [example.candidates[0] for example in sampled] == ANSWERS
    assert {len(set(example.candidates)) for example in sampled} == {10}
    assert sampled == with_sampled_candidates(examples)  # the same in every evaluation


def test_few_answers_and_given_negatives_are_all_used() -> None:
    few = with_sampled_candidates([Example("question", (answer,)) for answer in ANSWERS[:4]])
    assert {frozenset(example.candidates) for example in few} == {frozenset(ANSWERS[:4])}
    given = Example("question", ("right", *map(str, range(20))))
    assert with_sampled_candidates([given, Example("other", ("a",))])[0] == given


@pytest.mark.parametrize("columns", [{}, {"negatives": "wrong"}])
def test_a_cross_encoder_run_reports_recall_and_mrr(
    columns: dict[str, str], tiny_folder: FolderOf, tmp_path: Path
) -> None:
    rows = [{"context": f"the {word}", "answer": f"a {word}", "wrong": ["cat", "dog"]} for word in WORDS]
    data = {"files": write_rows(tmp_path / "rows.jsonl", rows), "reader": "answers", "columns": columns}
    parts: dict[str, Any] = {
        "model": {"kind": "cross", "source": str(tiny_folder("bert"))},
        "data": {"train": data},
        "objective": {"kind": "listwise"},
        "training": {"epochs": 1, "metric_for_best_model": "mrr"},
    }
    result = run(tables(tiny_folder("bert"), **parts), tmp_path / "run")
    assert {"recall_at_1", "mrr"} <= result["untrained"].keys()
    assert 0.1 <= result["dev"]["mrr"] <= 1
