"""LangChain's own vector store and chains, with models of tercet."""

import asyncio

import numpy as np
import pytest
from tests.integrations.conftest import QUERY, TEXTS

import tercet

pytest.importorskip("langchain_core", reason="needs langchain-core")

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from tercet.integrations.langchain import TercetEmbeddings, TercetReranker

pytestmark = pytest.mark.slow


def test_vectors_equal_the_library(minilm: tercet.BiEncoder) -> None:
    embeddings = TercetEmbeddings(minilm)
    np.testing.assert_allclose(embeddings.embed_documents(TEXTS), minilm.encode(TEXTS), atol=1e-5)
    query = minilm.encode([QUERY], side="context")[0]
    np.testing.assert_allclose(embeddings.embed_query(QUERY), query, atol=1e-5)
    np.testing.assert_allclose(asyncio.run(embeddings.aembed_query(QUERY)), query, atol=1e-5)
    assert embeddings.embed_documents([]) == []


def test_a_name_is_loaded() -> None:
    assert TercetEmbeddings("bi").model.kind == "bi"
    assert TercetReranker().model.kind == "cross"


def test_a_vector_store_finds_what_the_library_ranks_first(minilm: tercet.BiEncoder) -> None:
    store = InMemoryVectorStore.from_texts(TEXTS, TercetEmbeddings(minilm))
    found = store.similarity_search(QUERY, k=5)
    expected = [ranked.text for ranked in minilm.rank(QUERY, TEXTS, k=5)]
    assert [document.page_content for document in found] == expected


def test_a_chain_retrieves_and_reranks(minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    store = InMemoryVectorStore.from_texts(TEXTS, TercetEmbeddings(minilm))
    retriever = store.as_retriever(search_kwargs={"k": 10})
    reranker = TercetReranker(model=cross, top_n=4)
    chain = RunnableLambda(lambda query: reranker.compress_documents(retriever.invoke(query), query))
    first = [ranked.text for ranked in minilm.rank(QUERY, TEXTS, k=10)]
    expected = cross.rank(QUERY, first, k=4)
    found = chain.invoke(QUERY)
    assert [document.page_content for document in found] == [ranked.text for ranked in expected]
    scores = [document.metadata["relevance_score"] for document in found]
    assert scores == pytest.approx([ranked.score for ranked in expected], abs=1e-5)


def test_reranking_leaves_the_given_documents_as_they_are(cross: tercet.CrossEncoder) -> None:
    documents = [Document(text, metadata={"page": 7}) for text in TEXTS[:3]]
    found = TercetReranker(model=cross).compress_documents(documents, QUERY)
    assert all(document.metadata == {"page": 7} for document in documents)
    assert {document.metadata["page"] for document in found} == {7}
    assert TercetReranker(model=cross).compress_documents([], QUERY) == []


def test_a_cross_encoder_has_no_vectors(cross: tercet.CrossEncoder) -> None:
    with pytest.raises(tercet.errors.InputError, match="has no vectors: use a bi- or poly-encoder"):
        TercetEmbeddings(cross).embed_query(QUERY)
