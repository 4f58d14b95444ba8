"""Requests over HTTP while the engine is busy: refused before they are read, cancelled, or out of time."""

import json
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx2 as httpx
import pytest
from tests.serve.held import HeldServer, held_server, wait_until
from tests.serve.running import tiny_models

from tercet.settings.engine import EngineConfig
from tercet.settings.serve import ServeConfig, ServeLimits, ServerConfig

RANK = {"context": "the old cat", "candidates": ["a dog"]}
EXPLAIN = {"context": "the old cat ran", "candidate": "a dog ran", "leave_one_out": True, "model": "cross"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tiny_models(tmp_path_factory.mktemp("models"))
    return {name: str(folder / name) for name in ("bi", "cross")}


@pytest.fixture
def server(models: dict[str, str]) -> Iterator[HeldServer]:
    """A server that refuses a request if another one is being computed."""
    engine = EngineConfig(max_wait_seconds=1e-9)
    serve = ServeConfig(models={"bi": models["bi"]}, port=0)
    with held_server(ServerConfig(serve=serve, engine=engine)) as found:
        yield found


@pytest.fixture
def patient(models: dict[str, str]) -> Iterator[HeldServer]:
    """A server of small batches, so that most texts wait."""
    engine = EngineConfig(batch_tokens=16)
    with held_server(ServerConfig(serve=ServeConfig(models=models, port=0), engine=engine)) as found:
        yield found


def send(server: HeldServer, path: str, body: object, *, only_head: bool = False) -> socket.socket:
    """A connection on which a request, or only its head, was sent."""
    content = json.dumps(body).encode()
    whole = written(path, content)
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    connection.sendall(whole[: -len(content)] if only_head else whole)
    return connection


def written(path: str, content: bytes) -> bytes:
    """A request as it is sent."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def answered(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head and the body of the next answer."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head, body


@contextmanager
def busy(server: HeldServer) -> Iterator[None]:
    """A request is being computed, so that the queue is full."""
    server.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(httpx.post, f"{server.url}/v1/rank", json=RANK, timeout=30)
        wait_until(lambda: server.service.engine.is_full())
        yield
        server.gate.set()
        assert first.result().status_code == 200


def test_a_request_is_refused_before_its_body_arrives_if_all_queues_are_full(server: HeldServer) -> None:
    with busy(server), send(server, "/v1/rank", RANK, only_head=True) as connection:
        head, body = answered(connection)
        assert httpx.get(f"{server.url}/v1/models").status_code == 200
    assert head.startswith(b"HTTP/1.1 429")
    assert b"retry-after: 2" in head
    assert b"x-content-type-options: nosniff" in head
    assert json.loads(body)["error"]["type"] == "overloaded"
    assert json.loads(body)["error"]["request_id"].encode() in head
    assert httpx.post(f"{server.url}/v1/rank", json=RANK).status_code == 200


def test_the_connection_of_a_refused_request_is_used_again(server: HeldServer) -> None:
    content = json.dumps(RANK).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        with busy(server):
            for _ in range(2):
                connection.sendall(written("/v1/rank", content))
                assert answered(connection)[0].startswith(b"HTTP/1.1 429")
        connection.sendall(written("/v1/rank", content))
        assert answered(connection)[0].startswith(b"HTTP/1.1 200")


def test_a_page_is_refused_with_its_headers_and_keeps_its_connection(server: HeldServer) -> None:
    page = written("/v1/rank", json.dumps(RANK).encode()).replace(
        b"Host: localhost", b"Host: localhost\r\nOrigin: http://localhost"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection, busy(server):
        for _ in range(2):
            connection.sendall(page)
            head, _body = answered(connection)
            assert head.startswith(b"HTTP/1.1 429")
            assert b"connection: close" not in head


def test_a_refused_request_that_never_ends_is_closed(models: dict[str, str]) -> None:
    serve = ServeConfig(models={"bi": models["bi"]}, port=0)
    limits, engine = ServeLimits(body_seconds=0.5), EngineConfig(max_wait_seconds=1e-9)
    config = ServerConfig(serve=serve, engine=engine, limits=limits)
    with (
        held_server(config) as server,
        busy(server),
        send(server, "/v1/rank", RANK, only_head=True) as connection,
    ):
        assert answered(connection)[0].startswith(b"HTTP/1.1 429")
        with suppress(ConnectionResetError):
            assert connection.recv(65536) == b""


def test_a_large_refused_request_ends_its_connection(server: HeldServer) -> None:
    large = {**RANK, "candidates": ["a dog" * 20_000]}
    with busy(server), send(server, "/v1/rank", large, only_head=True) as connection:
        head, _ = answered(connection)
        assert head.startswith(b"HTTP/1.1 429")
        assert b"connection: close" in head


def test_refused_requests_are_counted_and_logged_in_sum(
    server: HeldServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tercet.serve"), busy(server):
        for _ in range(20):
            assert httpx.post(f"{server.url}/v1/rank", json=RANK).status_code == 429
    metrics = httpx.get(f"{server.url}/metrics").text
    assert 'tercet_requests_total{route="other",status="429"} 20.0' in metrics
    assert 'tercet_errors_total{type="overloaded"} 20.0' in metrics
    lines = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert 1 <= len(lines) < 10
    assert lines[0] == "overloaded: refused 1 requests"


def test_an_explanation_stops_when_its_client_leaves(patient: HeldServer) -> None:
    patient.gate.clear()
    queue = patient.service.engine._models["cross"].queue
    with send(patient, "/v1/explain", EXPLAIN):
        wait_until(lambda: queue.tokens > 0 and queue.running > 0)
    wait_until(lambda: queue.tokens == 0)  # without opening the gate: what waits is dropped
    assert patient.service.explainer._open == 0
    patient.gate.set()
    wait_until(lambda: patient.queued() == 0)
    assert httpx.post(f"{patient.url}/v1/explain", json=EXPLAIN).status_code == 200


def test_explanations_that_were_left_make_room_for_others(patient: HeldServer) -> None:
    patient.gate.clear()
    connections = [send(patient, "/v1/explain", EXPLAIN) for _ in range(8)]
    wait_until(lambda: patient.service.explainer._open == 8)
    refused = httpx.post(f"{patient.url}/v1/explain", json=EXPLAIN)
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "overloaded")
    for connection in connections:
        connection.close()
    wait_until(lambda: patient.service.explainer._open == 0)
    patient.gate.set()
    assert httpx.post(f"{patient.url}/v1/explain", json=EXPLAIN).status_code == 200


def test_a_request_that_is_left_is_dropped_and_another_one_is_answered(patient: HeldServer) -> None:
    patient.gate.clear()
    with send(patient, "/v1/rank", RANK), ThreadPoolExecutor(1) as pool:
        wait_until(lambda: patient.queued() == 2)
        other = {**RANK, "candidates": ["a dog", "the moon"]}
        waiting = pool.submit(httpx.post, f"{patient.url}/v1/rank", json=other, timeout=30)
        wait_until(lambda: patient.queued() == 3)
        left = send(patient, "/v1/rank", {"context": "river", "candidates": ["bread"]})
        wait_until(lambda: patient.queued() == 5)
        left.close()
        wait_until(lambda: patient.queued() == 3)
        patient.gate.set()
        assert len(waiting.result().json()["ranking"]) == 2


def test_an_answer_that_takes_too_long_is_a_408(models: dict[str, str]) -> None:
    config = ServerConfig(
        serve=ServeConfig(models={"bi": models["bi"]}, port=0), limits=ServeLimits(request_seconds=0.2)
    )
    with held_server(config) as server:
        server.gate.clear()
        answer = httpx.post(f"{server.url}/v1/rank", json=RANK, timeout=30)
        assert answer.status_code == 408
        assert answer.json()["error"]["limit"] == "request_seconds"
        server.gate.set()
        wait_until(lambda: server.queued() == 0)
