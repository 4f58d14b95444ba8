"""Scorers under mteb, on a small task."""

from typing import Any, ClassVar

import mteb
import numpy as np
import pytest
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata

import tercet
from tercet.data.sample import questions
from tercet.evaluate.metrics import mean_reciprocal_rank, ranks
from tercet.evaluate.mteb import for_mteb
from tercet.settings.models import CrossConfig, PolyConfig

QUESTIONS = questions()[:24]


class SampleQuestions(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="SampleQuestions",
        description="Questions and their answers.",
        dataset={"path": "none/none", "revision": "0" * 40},
        type="Retrieval",
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )
    data_loaded = True
    k_values: ClassVar = (1, 10)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(
                        [
                            {"id": f"d{n}", "text": question.answer, "title": ""}
                            for n, question in enumerate(QUESTIONS)
                        ]
                    ),
                    "queries": Dataset.from_list(
                        [{"id": f"q{n}", "text": question.context} for n, question in enumerate(QUESTIONS)]
                    ),
                    "relevant_docs": {f"q{n}": {f"d{n}": 1} for n in range(len(QUESTIONS))},
                    "top_ranked": None,
                }
            }
        }

    def load_data(self, **kwargs: Any) -> None:
        """The constructor sets the data."""


def mrr_at_10(scorer: Any) -> float:
    scores = scorer.score_many(
        [question.context for question in QUESTIONS], [question.answer for question in QUESTIONS]
    )
    found = ranks(scores, np.arange(len(QUESTIONS)))
    return mean_reciprocal_rank(np.where(found <= 10, found, np.inf))


@pytest.mark.parametrize("kind", ["bi", "poly", "poly-first"])
def test_metrics_under_mteb_equal_those_of_the_scores(kind: str) -> None:
    scorer = (
        tercet.load("bi")
        if kind == "bi"
        else tercet.PolyEncoder.from_backbone(
            "bi",
            config=PolyConfig(
                codes=32,  # more than most questions have tokens
                code_kind="learnt" if kind == "poly" else "first",
                similarity="cosine",
                reduction="mean",
            ),
        )
    )
    results = mteb.evaluate(for_mteb(scorer, f"tercet/{kind}"), tasks=[SampleQuestions()], cache=None)
    scores = results.task_results[0].scores["test"][0]
    assert scores["mrr_at_10"] == pytest.approx(mrr_at_10(scorer), abs=1e-4)


def test_a_cross_encoder_reranks_under_mteb() -> None:
    scorer = tercet.CrossEncoder.from_backbone("bi", config=CrossConfig(head="compare"))
    task = SampleQuestions()
    all_documents = [f"d{n}" for n in range(len(QUESTIONS))]
    task.dataset["default"]["test"]["top_ranked"] = {f"q{n}": all_documents for n in range(len(QUESTIONS))}
    results = mteb.evaluate(for_mteb(scorer, "tercet/cross"), tasks=[task], cache=None)
    scores = results.task_results[0].scores["test"][0]
    assert scores["mrr_at_10"] == pytest.approx(mrr_at_10(scorer), abs=1e-4)
