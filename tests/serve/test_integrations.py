"""Integrations with a client of a real server instead of a local model: the same results."""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.integrations.conftest import QUERY, TEXTS
from tests.serve.running import Server

import tercet

pytestmark = pytest.mark.slow

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[tercet.Client]:
    with tercet.Client(server.url) as made:
        yield made


def test_langchain(client: tercet.Client, minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    pytest.importorskip("langchain_core", reason="needs langchain-core")
    from langchain_core.documents import Document

    from tercet.integrations.langchain import TercetEmbeddings, TercetReranker

    vectors = TercetEmbeddings(client).embed_documents(TEXTS)
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=TOLERANCE)
    query = TercetEmbeddings(client).embed_query(QUERY)
    np.testing.assert_allclose(query, minilm.encode([QUERY], side="context")[0], atol=TOLERANCE)
    reranker = TercetReranker(model=client, top_n=5)
    found = reranker.compress_documents([Document(text) for text in TEXTS], QUERY)
    assert [each.page_content for each in found] == [each.text for each in cross.rank(QUERY, TEXTS, k=5)]


def test_llama_index(client: tercet.Client, minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    from llama_index.core.schema import NodeWithScore, TextNode

    from tercet.integrations.llama_index import TercetEmbedding, TercetReranker

    vectors = TercetEmbedding(model=client).get_text_embedding_batch(TEXTS)
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=TOLERANCE)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    found = TercetReranker(model=client, top_n=5).postprocess_nodes(nodes, query_str=QUERY)
    assert [each.text for each in found] == [each.text for each in cross.rank(QUERY, TEXTS, k=5)]


def test_haystack(client: tercet.Client, minilm: tercet.BiEncoder, cross: tercet.CrossEncoder) -> None:
    pytest.importorskip("haystack", reason="needs haystack-ai")
    from haystack import Document

    from tercet.integrations.haystack import TercetDocumentEmbedder, TercetRanker

    documents = [Document(content=text) for text in TEXTS]
    vectors = [each.embedding for each in TercetDocumentEmbedder(client).run(documents)["documents"]]
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=TOLERANCE)
    found = TercetRanker(client, top_k=5).run(QUERY, documents)["documents"]
    assert [each.content for each in found] == [each.text for each in cross.rank(QUERY, TEXTS, k=5)]


@pytest.mark.parametrize("library", ["bertopic", "keybert"])
def test_bertopic_and_keybert(client: tercet.Client, minilm: tercet.BiEncoder, library: str) -> None:
    pytest.importorskip(library, reason=f"needs {library}")
    from importlib import import_module

    backend = import_module(f"tercet.integrations.{library}").TercetBackend(client)
    np.testing.assert_allclose(backend.embed(TEXTS), minilm.encode(TEXTS), atol=TOLERANCE)


def test_scikit_learn(client: tercet.Client, minilm: tercet.BiEncoder) -> None:
    from sklearn.base import clone

    from tercet.integrations.scikit_learn import TercetVectorizer

    vectors = clone(TercetVectorizer(client)).fit_transform(TEXTS)
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=TOLERANCE)
