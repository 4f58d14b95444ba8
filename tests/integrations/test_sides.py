"""Queries are encoded as contexts and documents as candidates, which a model with prompts shows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tercet

QUERY, TEXT = "a dog ran", "the cat sat on the mat"


@pytest.fixture
def two_sided(tiny_folder: Callable[[str], Path]) -> tercet.BiEncoder:
    """A bi-encoder that gives a text another vector as a context than as a candidate."""
    config = tercet.BiConfig(context_prompt="new ", candidate_prompt="old ")
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config)
    both = [scorer.encode([QUERY], side=side) for side in ("context", "candidate")]
    assert not np.allclose(*both, atol=1e-2)
    return scorer


def check(scorer: tercet.BiEncoder, query: list[float], document: list[float]) -> None:
    np.testing.assert_allclose(query, scorer.encode([QUERY], side="context")[0], atol=1e-5)
    np.testing.assert_allclose(document, scorer.encode([TEXT], side="candidate")[0], atol=1e-5)


def test_langchain(two_sided: tercet.BiEncoder) -> None:
    pytest.importorskip("langchain_core", reason="needs langchain-core")
    from tercet.integrations.langchain import TercetEmbeddings

    embeddings = TercetEmbeddings(two_sided)
    check(two_sided, embeddings.embed_query(QUERY), embeddings.embed_documents([TEXT])[0])


def test_llama_index(two_sided: tercet.BiEncoder) -> None:
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    from tercet.integrations.llama_index import TercetEmbedding

    embedding = TercetEmbedding(model=two_sided)
    check(two_sided, embedding.get_query_embedding(QUERY), embedding.get_text_embedding(TEXT))


def test_haystack(two_sided: tercet.BiEncoder) -> None:
    pytest.importorskip("haystack", reason="needs haystack-ai")
    from haystack import Document

    from tercet.integrations.haystack import TercetDocumentEmbedder, TercetTextEmbedder

    (document,) = TercetDocumentEmbedder(two_sided).run([Document(content=TEXT)])["documents"]
    check(two_sided, TercetTextEmbedder(two_sided).run(QUERY)["embedding"], document.embedding)


def test_scikit_learn(two_sided: tercet.BiEncoder) -> None:
    from tercet.integrations.scikit_learn import TercetVectorizer

    queries = TercetVectorizer(two_sided, side="context").fit_transform([QUERY])
    check(two_sided, queries[0].tolist(), TercetVectorizer(two_sided).fit_transform([TEXT])[0].tolist())
