"""``tercet.Client`` and ``tercet.AsyncClient`` against a real server: the same results as the library."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import FAQ
from tests.serve.running import Server

import tercet
from tercet.errors import ServerError
from tercet.records import Explanation, Hits

pytestmark = pytest.mark.slow

TEXTS = [entry["text"] for entry in FAQ[:12]]
CONTEXT = "nobody was home when the driver came"
DIALOGUE = ["Hi!", "My card was declined."]
TOLERANCE = 1e-5


class Waiting:
    """An ``AsyncClient`` whose coroutines are run to their end, so that the same tests apply to it."""

    def __init__(self, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = tercet.AsyncClient(**options)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return lambda *given, **named: self._runner.run(method(*given, **named))

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


@pytest.fixture(scope="module", params=[tercet.Client, Waiting], ids=["sync", "async"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[tercet.Client]:
    """Both clients, with batches small enough to be split."""
    made = request.param(base_url=server.url, batch_texts=5)
    yield made
    made.close()


def test_vectors_equal_the_library(client: tercet.Client, minilm: tercet.BiEncoder) -> None:
    vectors = client.embed(TEXTS, model="bi")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=TOLERANCE)


def test_fewer_dimensions_equal_the_library(client: tercet.Client, minilm: tercet.BiEncoder) -> None:
    expected = minilm.encode(TEXTS, dimensions=64, normalize=True)
    np.testing.assert_allclose(client.embed(TEXTS, model="bi", dimensions=64), expected, atol=TOLERANCE)


@pytest.mark.parametrize("context", [CONTEXT, DIALOGUE], ids=["text", "turns"])
def test_scores_equal_the_library(client: tercet.Client, poly: tercet.PolyEncoder, context: Any) -> None:
    expected = poly.score(context, TEXTS)
    np.testing.assert_allclose(client.score(context, TEXTS, model="poly"), expected, atol=TOLERANCE)


def test_scores_of_several_contexts_equal_the_library(
    client: tercet.Client, minilm: tercet.BiEncoder
) -> None:
    contexts = [CONTEXT, DIALOGUE]
    every = client.score_many(contexts, TEXTS, model="bi")
    np.testing.assert_allclose(every, minilm.score_many(contexts, TEXTS), atol=TOLERANCE)
    pairs = client.score_pairs(contexts, TEXTS[:2], model="bi")
    np.testing.assert_allclose(pairs, minilm.score_pairs(contexts, TEXTS[:2]), atol=TOLERANCE)


def test_a_ranking_equals_the_library(client: tercet.Client, poly: tercet.PolyEncoder) -> None:
    found, expected = client.rank(DIALOGUE, TEXTS, k=4, model="poly"), poly.rank(DIALOGUE, TEXTS, k=4)
    assert [(each.position, each.text) for each in found] == [(each.position, each.text) for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=TOLERANCE)
    assert type(found[0]) is tercet.Ranked


def test_a_reranking_is_that_of_the_cross_encoder(client: tercet.Client, cross: tercet.CrossEncoder) -> None:
    found, expected = client.rerank(CONTEXT, TEXTS, top_n=3), cross.rank(CONTEXT, TEXTS, k=3)
    assert [each.position for each in found] == [each.position for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=TOLERANCE)
    assert found[0].text == TEXTS[found[0].position]


@pytest.mark.parametrize("name", ["bi", "poly"])
def test_an_explanation_equals_the_library(
    client: tercet.Client, minilm: tercet.BiEncoder, poly: tercet.PolyEncoder, name: str
) -> None:
    found = client.explain(CONTEXT, TEXTS[0], model=name)
    expected = (minilm if name == "bi" else poly).explain(CONTEXT, TEXTS[0])
    assert isinstance(found, Explanation)
    assert (found.method, found.context, found.notes) == (expected.method, CONTEXT, expected.notes)
    assert len(found.codes) == len(expected.codes)
    for mine, theirs in zip(found.tokens, expected.tokens, strict=True):
        assert (mine.text, mine.start, mine.end) == (theirs.text, theirs.start, theirs.end)
        assert mine.contribution == pytest.approx(theirs.contribution, abs=TOLERANCE)


def test_a_search_equals_the_library(client: tercet.Client, minilm: tercet.BiEncoder) -> None:
    hits = client.search("faq", CONTEXT, k=5)
    expected = minilm.rank(CONTEXT, [entry["text"] for entry in FAQ], k=5)
    assert isinstance(hits, Hits)
    assert hits.certified
    assert [hit.id for hit in hits] == [f"q{each.position}" for each in expected]
    assert [hit.score for hit in hits] == pytest.approx([each.score for each in expected], abs=TOLERANCE)


def test_a_search_obeys_conditions(client: tercet.Client) -> None:
    topic = FAQ[20]["topic"]
    assert {hit.metadata["topic"] for hit in client.search("faq", CONTEXT, where={"topic": topic})} == {topic}


def test_candidates_are_added_updated_found_and_removed(client: tercet.Client) -> None:
    before = len(FAQ[:2])
    added = client.add(
        "notes", [{"id": f"n{number}", "text": f"note number {number}"} for number in range(12)]
    )
    assert (added.changed, added.size) == (12, before + 12)
    changed = client.update("notes", [{"id": "n3", "text": "zebras graze in the savanna", "year": 2024}])
    assert (changed.changed, changed.size) == (1, before + 12)
    best = client.search("notes", "zebras in the savanna", k=1)[0]
    assert (best.id, best.metadata) == ("n3", {"year": 2024})
    removed = client.remove("notes", [f"n{number}" for number in range(12)])
    assert (removed.changed, removed.size) == (12, before)


def test_models_and_indexes_are_listed(client: tercet.Client, minilm: tercet.BiEncoder) -> None:
    models = client.models()
    assert [(model.id, model.kind, model.width) for model in models] == [
        ("bi", "bi", 384),
        ("poly", "poly", 384),
        ("cross", "cross", None),
    ]
    assert models[0].fingerprint == minilm.fingerprint
    assert [(index.id, index.size, index.model) for index in client.indexes()] == [
        ("faq", len(FAQ), "bi"),
        ("notes", 2, "bi"),
    ]


def test_the_server_is_ready(client: tercet.Client) -> None:
    assert client.ready() is True


def test_an_unknown_model_is_an_error_with_its_type_and_request(client: tercet.Client) -> None:
    with pytest.raises(ServerError, match=r"there is no model 'byte'.*404 unknown_model") as caught:
        client.rank(CONTEXT, TEXTS, model="byte")
    error = caught.value
    assert (error.status, error.type) == (404, "unknown_model")
    assert error.request_id
    assert error.request_id in str(error)


def test_an_exceeded_limit_is_named(client: tercet.Client) -> None:
    with pytest.raises(ServerError) as caught:
        client.search("faq", CONTEXT, k=1001)
    assert (caught.value.status, caught.value.limit, caught.value.param) == (422, "max_k", "k")


def test_a_failed_addition_says_how_much_was_added_before(client: tercet.Client) -> None:
    twice = [*({"id": f"m{number}", "text": "a note"} for number in range(7)), {"id": "m0", "text": "again"}]
    try:
        with pytest.raises(ServerError, match="The first 5 of 8 candidates were changed before"):
            client.add("notes", twice)
    finally:
        client.remove("notes", [f"m{number}" for number in range(5)])


def test_truncated_texts_are_warned_of(client: tercet.Client) -> None:
    with pytest.warns(tercet.errors.TruncationWarning, match="the model bi reads"):
        client.embed(["word " * 1000], model="bi")


def test_the_model_of_the_client_is_the_default(server: Server, cross: tercet.CrossEncoder) -> None:
    with tercet.Client(server.url, model="cross") as client:
        expected = cross.score(CONTEXT, TEXTS)
        np.testing.assert_allclose(client.score(CONTEXT, TEXTS), expected, atol=TOLERANCE)
