"""OpenAI's own client, unchanged, against a real server."""

import asyncio
from base64 import b64decode
from collections.abc import Iterator

import numpy as np
import pytest
from tests.serve.conftest import FAQ
from tests.serve.running import Server, running_server

import tercet

pytestmark = pytest.mark.slow

openai = pytest.importorskip("openai", reason="needs openai")

TEXTS = [entry["text"] for entry in FAQ[:8]]
TOLERANCE = 1e-5
KEY = "0123456789abcdef-key"


@pytest.fixture(scope="module")
def client(server: Server) -> "Iterator[openai.OpenAI]":
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def vectors_of(answer: "openai.types.CreateEmbeddingResponse") -> np.ndarray:
    assert [each.index for each in answer.data] == list(range(len(answer.data)))
    return np.array([each.embedding for each in answer.data])


@pytest.mark.parametrize("form", ["float", "base64", None], ids=["float", "base64", "default"])
def test_vectors_equal_the_library(
    client: "openai.OpenAI", minilm: tercet.BiEncoder, form: str | None
) -> None:
    options = {} if form is None else {"encoding_format": form}
    answer = client.embeddings.create(input=TEXTS, model="bi", **options)
    if form == "base64":  # asked for by name, the client leaves it as it is
        rows = [np.frombuffer(b64decode(str(each.embedding)), dtype="<f4") for each in answer.data]
    else:
        rows = list(vectors_of(answer))
    np.testing.assert_allclose(np.stack(rows), minilm.encode(TEXTS), atol=TOLERANCE)
    assert answer.model == "bi"
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > len(TEXTS)


def test_a_single_text_is_one_vector(client: "openai.OpenAI", poly: tercet.PolyEncoder) -> None:
    vectors = vectors_of(client.embeddings.create(input=TEXTS[0], model="poly"))
    np.testing.assert_allclose(vectors, poly.encode(TEXTS[:1]), atol=TOLERANCE)


def test_fewer_dimensions_equal_the_library(client: "openai.OpenAI", minilm: tercet.BiEncoder) -> None:
    vectors = vectors_of(client.embeddings.create(input=TEXTS, model="bi", dimensions=64))
    expected = minilm.encode(TEXTS, dimensions=64, normalize=True)
    np.testing.assert_allclose(vectors, expected, atol=TOLERANCE)


def test_token_arrays_equal_their_texts(client: "openai.OpenAI", minilm: tercet.BiEncoder) -> None:
    ids = [tokens[1:-1] for tokens in minilm.token_ids(TEXTS, "candidate")]  # without special tokens
    vectors = vectors_of(client.embeddings.create(input=ids, model="bi"))
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=TOLERANCE)
    vectors = vectors_of(client.embeddings.create(input=ids[0], model="bi"))
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS[:1]), atol=TOLERANCE)


def test_the_async_client_works_too(server: Server, minilm: tercet.BiEncoder) -> None:
    async def run() -> np.ndarray:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            answers = [client.embeddings.create(input=[text], model="bi") for text in TEXTS]
            return np.concatenate([vectors_of(each) for each in await asyncio.gather(*answers)])

    np.testing.assert_allclose(asyncio.run(run()), minilm.encode(TEXTS), atol=TOLERANCE)


def test_models_are_listed(client: "openai.OpenAI") -> None:
    assert [model.id for model in client.models.list()] == ["bi", "poly", "cross"]


def test_an_unknown_model_is_not_found(client: "openai.OpenAI") -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(input=TEXTS, model="text-embedding-3-small")
    assert "loaded models are bi, poly, cross" in caught.value.message
    assert (caught.value.type, caught.value.status_code) == ("unknown_model", 404)
    assert caught.value.request_id


@pytest.mark.parametrize("wrong", [[""], []], ids=["empty text", "no texts"])
def test_wrong_texts_are_unprocessable(client: "openai.OpenAI", wrong: list[str]) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.embeddings.create(input=wrong, model="bi")
    assert caught.value.type == "invalid_request"


def test_a_model_without_vectors_is_unprocessable(client: "openai.OpenAI") -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="a cross-encoder, which has no vectors"):
        client.embeddings.create(input=TEXTS, model="cross")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that needs a key and answers one request at a time."""
    pytest.importorskip("fastapi", reason="needs tercet[serve]")
    log = tmp_path_factory.mktemp("guarded") / "log.txt"
    options = ["--model", "bi", "--set", "limits.max_requests=1"]
    with running_server(*options, log=log, environment={"TERCET_API_KEYS": f"read {KEY}"}) as running:
        yield running


def test_a_wrong_key_is_an_authentication_error(guarded: Server) -> None:
    with (
        openai.OpenAI(base_url=f"{guarded.url}/v1", api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.embeddings.create(input=TEXTS, model="bi")
    with openai.OpenAI(base_url=f"{guarded.url}/v1", api_key=KEY) as client:
        assert len(client.embeddings.create(input=TEXTS, model="bi").data) == len(TEXTS)


def test_too_many_requests_are_a_rate_limit_error_and_retries_succeed(guarded: Server) -> None:
    async def run(retries: int) -> list[object]:
        async with openai.AsyncOpenAI(
            base_url=f"{guarded.url}/v1", api_key=KEY, max_retries=retries
        ) as client:
            many = [client.embeddings.create(input=TEXTS * 20, model="bi") for _ in range(4)]
            return await asyncio.gather(*many, return_exceptions=True)

    refused = [each for each in asyncio.run(run(0)) if isinstance(each, Exception)]
    assert refused
    assert {type(each) for each in refused} == {openai.RateLimitError}
    assert not [each for each in asyncio.run(run(20)) if isinstance(each, Exception)]


def test_our_client_has_the_same_patience(guarded: Server) -> None:
    async def run() -> list[np.ndarray]:
        async with tercet.AsyncClient(guarded.url, api_key=KEY, retries=20) as client:
            return await asyncio.gather(*(client.embed(TEXTS * 20) for _ in range(4)))

    assert [len(each) for each in asyncio.run(run())] == [160] * 4
