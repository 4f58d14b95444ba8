"""nDCG@10 of the packaged bi-encoder on the sample retrieval set, computed by hand and by other libraries."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import tercet
from tercet.data.sample import sample_folder
from tercet.errors import TruncationWarning
from tercet.evaluate.tasks.load import load_task
from tercet.evaluate.tasks.retrieval import RetrievalTask
from tercet.formats.sources import resolve_model
from tercet.settings.chunks import ChunkConfig
from tercet.settings.tasks import read_task

FOLDER = sample_folder("abstracts.en")
Scores = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def relevance() -> Grades:
    """The judgements, read without tercet."""
    found: Grades = defaultdict(dict)
    for line in (FOLDER / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        found[query][document] = int(grade)
    return dict(found)


@pytest.fixture(scope="module")
def scores() -> Scores:
    """The cosine of every query and document by sentence-transformers, read without tercet."""
    corpus = [json.loads(line) for line in (FOLDER / "corpus.jsonl").open()]
    queries = [json.loads(line) for line in (FOLDER / "queries.jsonl").open()]
    model = SentenceTransformer(str(resolve_model("bi")), device="cpu")
    documents = model.encode([f"{row['title']}\n{row['text']}" for row in corpus])
    questions = model.encode([row["text"] for row in queries])
    units = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (questions, documents)]
    cosine = units[0] @ units[1].T  # [B, C]
    return {
        query["_id"]: {row["_id"]: float(score) for row, score in zip(corpus, line, strict=True)}
        for query, line in zip(queries, cosine, strict=True)
    }


@pytest.fixture(scope="module")
def ours() -> float:
    task = load_task(read_task("sample:abstracts.en"))
    with pytest.warns(TruncationWarning, match="13 of 40 candidates"):
        result = task.run(tercet.load("bi", device="cpu"), "bi")
    return result.sample("nDCG@10").value


def ndcg_at_10(scores: Mapping[str, float], grades: Mapping[str, int]) -> float:
    """DCG = Σ grade / log2(rank + 1) over the best ten, divided by that of the ideal order."""
    ranked = sorted(scores, key=lambda name: -scores[name])[:10]
    dcg = sum(grades.get(name, 0) / math.log2(rank + 1) for rank, name in enumerate(ranked, start=1))
    ideal = sorted(grades.values(), reverse=True)[:10]
    return dcg / sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, start=1))


def test_ndcg_equals_a_computation_by_hand(ours: float, scores: Scores, relevance: Grades) -> None:
    by_hand = [ndcg_at_10(scores[query], grades) for query, grades in relevance.items()]
    assert len(by_hand) == 18
    assert ours == pytest.approx(sum(by_hand) / 18, abs=1e-4)
    assert 0.8 < ours < 0.99  # a perfect ranking would hide differences


def test_ndcg_equals_trec_eval(ours: float, scores: Scores, relevance: Grades) -> None:
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], relevance, scores)
    assert ours == pytest.approx(found[ir_measures.nDCG @ 10], abs=1e-4)


def test_ndcg_with_chunks_equals_a_computation_by_hand(relevance: Grades) -> None:
    chunk = ChunkConfig(size=100, overlap=20)
    task = load_task(read_task("sample:abstracts.en"))
    assert isinstance(task, RetrievalTask)
    bi = tercet.load("bi", device="cpu")
    ours = replace(task, chunk=chunk).run(bi, "bi").sample("nDCG@10").value
    assert isinstance(bi, tercet.BiEncoder)
    documents = task.data.documents
    parts = dict(zip(documents, bi.chunks(list(documents.values()), chunk), strict=True))
    model = SentenceTransformer(str(resolve_model("bi")), device="cpu")
    queries = model.encode(list(task.data.queries.values()), normalize_embeddings=True)
    best: Scores = {query: {} for query in task.data.queries}
    for name, of in parts.items():
        passages = [documents[name][part.start : part.end] for part in of]
        vectors = model.encode(passages, normalize_embeddings=True)
        for query, vector in zip(task.data.queries, queries, strict=True):
            best[query][name] = float(max(vectors @ vector))
    by_hand = [ndcg_at_10(best[query], grades) for query, grades in relevance.items()]
    assert sum(map(len, parts.values())) > 2 * len(documents)
    assert ours == pytest.approx(sum(by_hand) / 18, abs=1e-4)
