"""What the clients send: batches, keys, and nothing that is wrong."""

import asyncio
import logging
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from tests.client.scripted import Reply, embedded, problem, scripted, written

import tercet
from tercet.errors import InputError, ServerError
from tercet.index import Item

KEY = "a-key-that-nobody-may-see"


def test_a_long_list_is_split_by_number_and_keeps_its_order() -> None:
    with scripted(embedded) as server, tercet.Client(server.url, batch_texts=3) as client:
        assert client.embed(map(str, range(8)))[:, 0].tolist() == list(range(8))
        assert [len(body["input"]) for body in server.bodies] == [3, 3, 2]


def test_a_long_list_is_split_by_bytes() -> None:
    texts = ["1" * 10, "2" * 10, "3" * 30, "4"]  # with quotes 12, 12, 32 and 3 bytes
    with scripted(embedded) as server, tercet.Client(server.url, batch_bytes=24) as client:
        client.embed(texts)
        assert [body["input"] for body in server.bodies] == [texts[:2], texts[2:3], texts[3:]]


def test_the_bytes_of_other_scripts_are_counted_in_utf_8() -> None:
    with scripted(written) as server, tercet.Client(server.url, batch_bytes=100) as client:
        client.add("faq", ["한" * 20, "한" * 20])  # 60 bytes each
        assert len(server.requests) == 2


def test_the_async_client_sends_a_bounded_number_at_a_time_and_keeps_the_order() -> None:
    def slow(body: Any) -> Reply:
        time.sleep(0.05 if int(body["input"][0]) % 2 else 0.01)
        return embedded(body)

    async def run(url: str) -> Any:
        async with tercet.AsyncClient(url, batch_texts=1) as client:
            return await client.embed(map(str, range(20)))

    with scripted(slow) as server:
        assert asyncio.run(run(server.url))[:, 0].tolist() == list(range(20))
        assert 1 < server.most_open <= tercet.AsyncClient.concurrency


def test_the_async_client_writes_one_after_another() -> None:
    def slow(body: Any) -> Reply:
        time.sleep(0.02)
        return written(body)

    async def run(url: str) -> Any:
        async with tercet.AsyncClient(url, batch_texts=1) as client:
            return await client.add("faq", list("abcdef"))

    with scripted(slow) as server:
        assert asyncio.run(run(server.url)).changed == 6
        assert server.most_open == 1
        assert [body["candidates"][0]["text"] for body in server.bodies] == list("abcdef")


def test_one_failure_ends_the_other_requests_of_a_list() -> None:
    async def run(url: str) -> None:
        async with tercet.AsyncClient(url, batch_texts=1) as client:
            with pytest.raises(ServerError):
                await client.embed(map(str, range(50)))

    with scripted(problem(422, "invalid_request")) as server:
        asyncio.run(run(server.url))
        assert len(server.requests) <= tercet.AsyncClient.concurrency


@pytest.mark.parametrize("side", ["context", "candidate"])
def test_the_side_and_the_dimensions_are_sent(side: Any) -> None:
    with scripted(embedded) as server, tercet.Client(server.url, model="mine") as client:
        client.embed(["1"], side=side, dimensions=1)
        assert server.bodies[0] == {
            "input": ["1"],
            "input_type": side,
            "dimensions": 1,
            "model": "mine",
            "encoding_format": "base64",
        }


def test_items_mappings_and_texts_are_sent_alike() -> None:
    given = ["one", {"id": "b", "text": "two", "year": 2020}, Item("c", "three", {"year": np.int64(2021)})]
    with scripted(written) as server, tercet.Client(server.url) as client:
        client.add("my index", given)
        path, body, _ = server.requests[0]
        assert path == "/v1/indexes/my%20index/add"
        assert body["candidates"] == [
            {"text": "one"},
            {"id": "b", "text": "two", "metadata": {"year": 2020}},
            {"id": "c", "text": "three", "metadata": {"year": 2021}},
        ]


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("embed", ([],), "there are no texts"),
        ("embed", (["good", " "],), "text 1 is empty"),
        ("embed", ("a text",), "texts must be a list"),
        ("rank", ("a", []), "there are no candidates"),
        ("rank", ("a", ["b"], 0), "k must be at least 1, got 0"),
        ("score_pairs", (["a"], ["b", "c"]), "pairs need as many"),
        ("add", ("faq", []), "there are no candidates"),
        ("add", ("faq", [{"id": "a"}]), "candidate 0 has no key 'text'"),
        ("add", ("faq", [{"text": "a", "when": float("nan")}]), "cannot be written as JSON"),
        ("add", ("faq", [{"text": "a", "where": {1, 2}}]), "set is neither text, number, list nor mapping"),
        ("update", ("faq", ["a"]), "candidate 0 has no id"),
        ("remove", ("faq", []), "there are no ids"),
        ("remove", ("faq", "abc"), "ids must be a list"),
    ],
)
def test_what_is_wrong_is_not_sent(method: str, given: tuple[Any, ...], message: str) -> None:
    with scripted(written) as server, tercet.Client(server.url) as client:
        with pytest.raises(InputError, match=message):
            getattr(client, method)(*given)
        assert server.requests == []


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_key_is_sent(monkeypatch: pytest.MonkeyPatch, by_variable: bool) -> None:
    monkeypatch.setenv("TERCET_API_KEY", KEY if by_variable else "another")
    with (
        scripted(embedded) as server,
        tercet.Client(server.url, api_key=None if by_variable else KEY) as client,
    ):
        client.embed(["1"])
        assert server.requests[0][2]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("kind", [tercet.Client, tercet.AsyncClient])
def test_the_key_is_in_no_representation(kind: type[Any]) -> None:
    client = kind("http://127.0.0.1:9", api_key=KEY)
    assert repr(client) == f"<{kind.__name__} of http://127.0.0.1:9>"
    assert KEY not in repr(vars(client)) + repr(vars(client._http)) + str(client._http.headers)


def test_the_key_is_in_no_log_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        scripted(problem(401, "unauthorized")) as server,
        tercet.Client(server.url, api_key=KEY) as client,
        pytest.raises(ServerError) as caught,
    ):
        client.embed(["1"])
    assert KEY not in caplog.text + repr(caught.value) + str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} 2", f"{KEY}é"])
def test_a_malformed_key_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(InputError) as caught:
        tercet.Client(api_key=key)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "127.0.0.1:8080"}, "must begin with http"),
        ({"base_url": "http://me:pass@host"}, "must have no user name or password"),
        ({"retries": -1}, "retries must be at least 0"),
        ({"timeout": 0}, "timeout positive"),
        ({"batch_texts": 0}, "batch_texts must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tercet.Client(**options)


def test_the_default_server_is_this_machine() -> None:
    assert tercet.Client().base_url == "http://127.0.0.1:8080"


def test_a_client_needs_no_torch() -> None:
    check = "import sys, tercet; tercet.Client(), tercet.AsyncClient(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_both_clients_have_the_same_methods_and_arguments() -> None:
    from inspect import signature

    names = {name for name in vars(tercet.Client) if not name.startswith("_")}
    assert names == {name for name in vars(tercet.AsyncClient) if not name.startswith("_")} - {"concurrency"}
    for name in names:
        assert signature(getattr(tercet.Client, name)) == signature(getattr(tercet.AsyncClient, name))
