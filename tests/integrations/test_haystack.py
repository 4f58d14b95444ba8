"""Haystack's own pipeline and document store, with models of tercet."""

import numpy as np
import pytest
from tests.integrations.conftest import QUERY, TEXTS

import tercet

pytest.importorskip("haystack", reason="needs haystack-ai")

from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from tercet.integrations.haystack import TercetDocumentEmbedder, TercetRanker, TercetTextEmbedder

pytestmark = pytest.mark.slow


def test_vectors_equal_the_library(minilm: tercet.BiEncoder) -> None:
    documents = TercetDocumentEmbedder(minilm).run([Document(content=text) for text in TEXTS])["documents"]
    vectors = [document.embedding for document in documents]
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=1e-5)
    query = TercetTextEmbedder(minilm).run(QUERY)["embedding"]
    np.testing.assert_allclose(query, minilm.encode([QUERY], side="context")[0], atol=1e-5)


def test_a_pipeline_embeds_retrieves_and_ranks(minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    store = InMemoryDocumentStore()
    given = [Document(content=text) for text in TEXTS]
    store.write_documents(TercetDocumentEmbedder(minilm).run(given)["documents"])
    assert all(document.embedding is None for document in given)
    pipeline = Pipeline()
    pipeline.add_component("embedder", TercetTextEmbedder(minilm))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=10))
    pipeline.add_component("ranker", TercetRanker(cross, top_k=4))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")
    found = pipeline.run({"embedder": {"text": QUERY}, "ranker": {"query": QUERY}})["ranker"]["documents"]
    first = [ranked.text for ranked in minilm.rank(QUERY, TEXTS, k=10)]
    expected = cross.rank(QUERY, first, k=4)
    assert [document.content for document in found] == [ranked.text for ranked in expected]
    assert [document.score for document in found] == pytest.approx(
        [ranked.score for ranked in expected], abs=1e-5
    )


def test_a_pipeline_with_names_can_be_written_and_read() -> None:
    pipeline = Pipeline()
    pipeline.add_component("ranker", TercetRanker("cross", top_k=2))
    copy = Pipeline.loads(pipeline.dumps(), allowed_modules=["tercet.integrations.haystack"])
    documents = [Document(content=text) for text in TEXTS[:5]]
    found = copy.run({"ranker": {"query": QUERY, "documents": documents}})["ranker"]["documents"]
    assert len(found) == 2


def test_no_documents_are_ranked_as_none(cross: tercet.CrossEncoder) -> None:
    assert TercetRanker(cross).run(QUERY, []) == {"documents": []}


def test_a_document_without_content_is_named(minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    documents = [Document(content="a dog"), Document(id="picture", content=None), Document(content="a cat")]
    with pytest.raises(tercet.errors.InputError, match=r"document 1 \(id picture\) has none"):
        TercetDocumentEmbedder(minilm).run(documents)
    with pytest.raises(tercet.errors.InputError, match=r"document 1 \(id picture\) has none"):
        TercetRanker(cross).run(QUERY, documents)
