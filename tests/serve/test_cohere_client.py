"""Cohere's own clients, unchanged, against a real server."""

import asyncio
from math import exp
from typing import Any

import pytest
from tests.serve.conftest import FAQ
from tests.serve.running import Server

import tercet

pytestmark = pytest.mark.slow

cohere = pytest.importorskip("cohere", reason="needs cohere")

QUERY = "My card was declined"
TEXTS = [entry["text"] for entry in FAQ]
ONCE = {"max_retries": 0}


@pytest.fixture(scope="module", params=["Client", "ClientV2"])
def client(request: pytest.FixtureRequest, server: Server) -> Any:
    """The clients of both versions of Cohere's interface."""
    return getattr(cohere, request.param)(api_key="none", base_url=server.url)


@pytest.mark.parametrize("name", ["bi", "poly", "cross"])
def test_a_reranking_equals_the_library(
    client: Any,
    minilm: tercet.BiEncoder,
    poly: tercet.PolyEncoder,
    cross: tercet.CrossEncoder,
    name: str,
) -> None:
    scorer: tercet.Scorer = {"bi": minilm, "poly": poly, "cross": cross}[name]
    answer = client.rerank(model=name, query=QUERY, documents=TEXTS, top_n=5)
    expected = scorer.rank(QUERY, TEXTS, k=5)
    assert [each.index for each in answer.results] == [each.position for each in expected]
    relevance = [1 / (1 + exp(-each.score)) if name == "cross" else each.score for each in expected]
    assert [each.relevance_score for each in answer.results] == pytest.approx(relevance, abs=1e-5)


def test_the_async_client_works_too(server: Server, cross: tercet.CrossEncoder) -> None:
    async def run() -> Any:
        async with cohere.AsyncClientV2(api_key="none", base_url=server.url) as client:
            return await client.rerank(model="cross", query=QUERY, documents=TEXTS, top_n=3)

    found = [each.index for each in asyncio.run(run()).results]
    assert found == [each.position for each in cross.rank(QUERY, TEXTS, k=3)]


def test_documents_may_be_objects_and_come_back(server: Server) -> None:
    client = cohere.Client(api_key="none", base_url=server.url)
    documents = [{"text": text} for text in TEXTS]
    answer = client.rerank(model="cross", query=QUERY, documents=documents, top_n=1, return_documents=True)
    assert answer.results[0].document.text == TEXTS[answer.results[0].index]


def test_an_unknown_model_is_not_found(client: Any) -> None:
    with pytest.raises(cohere.NotFoundError, match="loaded models are bi, poly, cross"):
        client.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, request_options=ONCE)


def test_no_documents_are_unprocessable(client: Any) -> None:
    with pytest.raises(cohere.UnprocessableEntityError) as caught:
        client.rerank(model="cross", query=QUERY, documents=[], request_options=ONCE)
    assert caught.value.status_code == 422
