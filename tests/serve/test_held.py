"""Requests over HTTP while the engine is busy: refused before they are read, cancelled, or out of time."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    connection.sendall(head.encode() + (b"" if only_head else content))
    return connection


def test_a_request_is_refused_before_its_body_arrives_if_all_queues_are_full(server: HeldServer) -> None:
    server.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(httpx.post, f"{server.url}/v1/rank", json=RANK, timeout=30)
        wait_until(lambda: server.service.engine.is_full())
        with send(server, "/v1/rank", RANK, only_head=True) as connection:
            answer = b"".join(iter(lambda: connection.recv(65536), b""))  # until the server closes it
        assert httpx.get(f"{server.url}/v1/models").status_code == 200
        server.gate.set()
        assert first.result().status_code == 200
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429")
    assert b"retry-after: 2" in head
    assert json.loads(body)["error"]["type"] == "overloaded"
    assert httpx.post(f"{server.url}/v1/rank", json=RANK).status_code == 200


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
