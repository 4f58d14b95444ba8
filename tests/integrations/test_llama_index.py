"""LlamaIndex's own index and retriever, with models of tercet."""

import asyncio

import numpy as np
import pytest
from tests.integrations.conftest import QUERY, TEXTS

import tercet

pytest.importorskip("llama_index.core", reason="needs llama-index-core")

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

from tercet.integrations.llama_index import TercetEmbedding, TercetReranker

pytestmark = pytest.mark.slow


def test_vectors_equal_the_library(minilm: tercet.BiEncoder) -> None:
    embedding = TercetEmbedding(model=minilm)
    vectors = embedding.get_text_embedding_batch(TEXTS)
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(embedding.get_text_embedding(TEXTS[0]), vectors[0], atol=1e-5)
    query = minilm.encode([QUERY], side="context")[0]
    np.testing.assert_allclose(embedding.get_query_embedding(QUERY), query, atol=1e-5)
    np.testing.assert_allclose(asyncio.run(embedding.aget_query_embedding(QUERY)), query, atol=1e-5)


def test_an_index_retrieves_and_reranks(minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    index = VectorStoreIndex(
        [TextNode(text=text) for text in TEXTS], embed_model=TercetEmbedding(model=minilm)
    )
    retrieved = index.as_retriever(similarity_top_k=10).retrieve(QUERY)
    first = minilm.rank(QUERY, TEXTS, k=10)
    assert [node.text for node in retrieved] == [ranked.text for ranked in first]
    found = TercetReranker(model=cross, top_n=4).postprocess_nodes(retrieved, query_str=QUERY)
    expected = cross.rank(QUERY, [ranked.text for ranked in first], k=4)
    assert [node.text for node in found] == [ranked.text for ranked in expected]
    assert [node.score for node in found] == pytest.approx([ranked.score for ranked in expected], abs=1e-5)


def test_a_reranker_needs_a_query(cross: tercet.CrossEncoder) -> None:
    with pytest.raises(tercet.errors.InputError, match="needs the query"):
        TercetReranker(model=cross).postprocess_nodes([])


def test_settings_can_be_written_without_the_model(minilm: tercet.BiEncoder) -> None:
    assert "model" not in TercetEmbedding(model=minilm).to_dict()
