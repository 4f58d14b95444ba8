"""Real data sets: results equal those of sentence-transformers and, on the same run file, ir-measures."""

import os
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

import tercet
from tercet.data.sources import open_source
from tercet.evaluate.model_names import parse_model_name
from tercet.evaluate.report import write_report
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.load import load_task
from tercet.formats.sources import resolve_model
from tercet.settings.tasks import read_task

TASKS = Path(__file__).parents[2] / "tasks"
DATA = os.environ.get("TERCET_DATA")
pytestmark = [
    pytest.mark.skipif(DATA is None, reason="TERCET_DATA is not set to a folder with the data sets"),
    pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning"),
]


def task_named(name: str) -> Any:
    return load_task(read_task(str(TASKS / f"{name}.toml")), root=Path(DATA or ""))


@pytest.fixture(scope="module")
def bi() -> tercet.BiEncoder:
    return tercet.BiEncoder.load(resolve_model("bi"), device="cpu")


@pytest.fixture(scope="module")
def peer() -> SentenceTransformer:
    return SentenceTransformer(str(resolve_model("bi")), device="cpu")


@pytest.mark.parametrize("name", ["stsb", "sick", "sts12", "sts13", "sts14", "sts15", "sts16"])
def test_similarity_equals_sentence_transformers(
    name: str, bi: tercet.BiEncoder, peer: SentenceTransformer
) -> None:
    task = task_named(name)
    ours = task.run(bi, "bi").sample("spearman").value
    pairs = task.pairs
    evaluator = EmbeddingSimilarityEvaluator(
        pairs.contexts, pairs.candidates, pairs.targets.tolist(), name="s"
    )
    assert ours == pytest.approx(evaluator(peer)["s_spearman_cosine"], abs=1e-4)
    if name == "stsb":
        assert 100 * ours == pytest.approx(82.03, abs=0.05)


def test_scifact_equals_ir_measures_on_the_run_file(tmp_path: Path) -> None:
    task = task_named("scifact")
    table = Evaluation([parse_model_name("bm25")], device="cpu").table(task)
    write_report([table], tmp_path / "report", settings={})
    run = ir_measures.read_trec_run(str(tmp_path / "report" / "scifact.bm25.0.run"))
    judgements = open_source("beir_scifact/qrels_test.jsonl.gz", root=Path(DATA or ""))
    qrels = [
        ir_measures.Qrel(row.columns["query-id"], row.columns["corpus-id"], row.columns["score"])
        for row in judgements
    ]
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.AP @ 100], qrels, run)
    estimates = table.rows[0].estimates
    assert estimates["nDCG@10"].value == pytest.approx(theirs[ir_measures.nDCG @ 10], abs=1e-6)
    assert estimates["MAP@100"].value == pytest.approx(theirs[ir_measures.AP @ 100], abs=1e-6)
