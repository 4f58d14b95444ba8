"""When a request is sent again, and when it must not be."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from tests.client.scripted import LOSE, Reply, Step, embedded, problem, scripted, written

import tercet
from tercet.client import attempts
from tercet.client.attempts import pause_before, retry_after
from tercet.errors import ServerError

WITH_IDS = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE", 0.01)


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a method of one of the clients: ``call(url, "embed", ["1"], retries=3)``."""

    def sync(url: str, method: str, *given: Any, **options: Any) -> Any:
        with tercet.Client(url, **options) as client:
            return getattr(client, method)(*given)

    def waiting(url: str, method: str, *given: Any, **options: Any) -> Any:
        async def run() -> Any:
            async with tercet.AsyncClient(url, **options) as client:
                return await getattr(client, method)(*given)

        return asyncio.run(run())

    return sync if request.param == "sync" else waiting


@pytest.mark.parametrize(
    "failure", [problem(429, "overloaded"), problem(503, "loading"), LOSE], ids=["429", "503", "lost"]
)
def test_a_read_is_sent_again(call: Callable[..., Any], failure: Step) -> None:
    with scripted(failure, failure, embedded) as server:
        assert call(server.url, "embed", ["7"]).tolist() == [[7.0]]
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 408, 413, 422, 500, 502])
def test_other_errors_are_not_sent_again(call: Callable[..., Any], status: int) -> None:
    with scripted(problem(status, "wrong")) as server:
        with pytest.raises(ServerError) as caught:
            call(server.url, "embed", ["7"])
        assert (caught.value.status, caught.value.type, caught.value.request_id) == (status, "wrong", "r1")
        assert len(server.requests) == 1


def test_retries_are_bounded_in_number(call: Callable[..., Any]) -> None:
    with scripted(problem(429, "overloaded")) as server:
        with pytest.raises(ServerError, match="after 3 attempts"):
            call(server.url, "embed", ["7"], retries=2)
        assert len(server.requests) == 3


def test_retries_are_bounded_in_time(call: Callable[..., Any]) -> None:
    with scripted(problem(429, "overloaded", retry_after="30")) as server:
        began = time.monotonic()
        with pytest.raises(ServerError, match="it is overloaded"):
            call(server.url, "embed", ["7"], retry_seconds=5)
        assert time.monotonic() - began < 5
        assert len(server.requests) == 1


def test_retry_after_is_obeyed(call: Callable[..., Any]) -> None:
    with scripted(problem(503, "loading", retry_after="1"), embedded) as server:
        began = time.monotonic()
        call(server.url, "embed", ["7"])
        assert time.monotonic() - began >= 1
        assert len(server.requests) == 2


@pytest.mark.parametrize("failure", [problem(429, "overloaded"), problem(503, "loading")])
def test_a_write_that_was_not_executed_is_sent_again(call: Callable[..., Any], failure: Step) -> None:
    with scripted(failure, written) as server:
        assert call(server.url, "add", "faq", ["without an id"]).changed == 1
        assert len(server.requests) == 2


def test_an_addition_without_ids_is_not_sent_again_if_the_connection_is_lost(
    call: Callable[..., Any],
) -> None:
    with scripted(LOSE, written) as server:
        with pytest.raises(
            ServerError, match=r"was not sent again.*without ids would be added twice"
        ) as caught:
            call(server.url, "add", "faq", [*WITH_IDS, "without an id"])
        assert caught.value.type == "connection_lost"
        assert caught.value.status is None
        assert len(server.requests) == 1


@pytest.mark.parametrize("method", ["add", "update", "remove"])
def test_a_write_with_ids_is_sent_again_if_the_connection_is_lost(
    call: Callable[..., Any], method: str
) -> None:
    given = ["a", "b"] if method == "remove" else WITH_IDS
    with scripted(LOSE, written) as server:
        assert call(server.url, method, "faq", given).changed == 2
        assert server.bodies[0] == server.bodies[1]


def test_an_error_after_a_lost_write_says_that_it_may_have_been_executed(call: Callable[..., Any]) -> None:
    with (
        scripted(LOSE, problem(422, "invalid_request")) as server,
        pytest.raises(ServerError, match="earlier attempt lost its connection, and may have been executed"),
    ):
        call(server.url, "add", "faq", WITH_IDS)


def test_a_slow_answer_is_an_error_and_not_sent_again(call: Callable[..., Any]) -> None:
    def slow(body: Any) -> Reply:
        time.sleep(0.5)
        return embedded(body)

    with scripted(slow) as server:
        with pytest.raises(ServerError, match=r"did not answer within 0\.1 s") as caught:
            call(server.url, "embed", ["7"], timeout=0.1)
        assert caught.value.type == "timeout"
        assert len(server.requests) == 1


def test_a_refused_connection_says_how_to_start_the_server(call: Callable[..., Any]) -> None:
    with scripted(embedded) as server:
        url = server.url  # nobody listens there any more
    with pytest.raises(ServerError, match=r'cannot connect to http.*start the server with "tercet serve"'):
        call(url, "embed", ["7"])


def test_a_server_that_does_not_listen_is_not_ready(call: Callable[..., Any]) -> None:
    with scripted(embedded) as server:
        url = server.url
    assert call(url, "ready") is False


def test_a_server_that_loads_is_not_ready_and_not_asked_again(call: Callable[..., Any]) -> None:
    with scripted(Reply(503, {"status": "loading"}), Reply(200, {"status": "ready"})) as server:
        assert call(server.url, "ready") is False
        assert len(server.requests) == 1
        assert call(server.url, "ready") is True


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"data": []}'])
def test_an_answer_of_another_shape_is_an_error(call: Callable[..., Any], answer: bytes) -> None:
    with (
        scripted(Reply(200, answer)) as server,
        pytest.raises(ServerError, match="is it a tercet server") as caught,
    ):
        call(server.url, "embed", ["7"])
    assert caught.value.type == "unexpected_answer"


def test_a_redirect_is_an_error_so_that_the_key_goes_nowhere_else(call: Callable[..., Any]) -> None:
    with scripted(embedded) as other, scripted(Reply(307, b"", {"Location": other.url})) as server:
        with pytest.raises(ServerError, match="answered 307"):
            call(server.url, "embed", ["7"], api_key="secret")
        assert other.requests == []


def test_pauses_double_up_to_a_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE", 0.5)
    assert [pause_before(retry, None, jitter=1.0) for retry in range(1, 7)] == [0.5, 1, 2, 4, 8, 8]
    assert [pause_before(retry, None, jitter=0.0) for retry in range(1, 4)] == [0.25, 0.5, 1]


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_a_pause_is_never_shorter_than_the_server_asks(jitter: float) -> None:
    assert pause_before(1, 3.0, jitter=jitter) >= 3


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("3", 3, 3),
        (format_datetime(datetime.now(UTC) + timedelta(seconds=900), usegmt=True), 600, 900),
        (format_datetime(datetime.now(UTC) - timedelta(seconds=900), usegmt=True), 0, 0),
    ],
    ids=["seconds", "date", "past"],
)
def test_retry_after_is_read_as_seconds_or_date(header: str, least: float, most: float) -> None:
    found = retry_after(httpx2.Response(503, headers={"Retry-After": header}))
    assert found is not None
    assert least <= found <= most


@pytest.mark.parametrize("header", ["", "soon", "-1", "1e999", "12 parsecs"])
def test_a_malformed_retry_after_is_ignored(header: str) -> None:
    assert retry_after(httpx2.Response(503, headers={"Retry-After": header})) is None
