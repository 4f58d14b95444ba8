"""The server as a process: slow and vanishing clients, keys, signals, kills, and several workers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.conftest import SENTENCES
from tests.serve.running import Server, running_server, tiny_models, tiny_options

import tercet
from tercet.files.lock import exclusive
from tercet.index.store import LOCK

pytestmark = pytest.mark.slow

RANK = {"context": "the old cat", "candidates": SENTENCES}
READ, WRITE = "reading-is-allowed", "writing-is-allowed"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models(tmp_path_factory.mktemp("models"))


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def head(length: int, path: str = "/v1/rank") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def received(connection: socket.socket) -> bytes:
    """All that the server sends until it ends the connection."""
    parts = [b""]
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def closed(connection: socket.socket) -> bool:
    """Whether the server ends the connection, after whatever it sends."""
    try:
        received(connection)
    except TimeoutError:
        return False
    return True


@pytest.fixture(scope="module")
def impatient(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """A server that waits for clients for a second only."""
    limits = ["body_seconds=1", "send_seconds=2", "request_seconds=20", "max_requests=20"]
    options = [part for limit in limits for part in ("--set", f"limits.{limit}")]
    with running_server(
        *tiny_options(folder), *options, log=tmp_path_factory.mktemp("log") / "log"
    ) as server:
        yield server


def test_a_slow_sender_is_told_so(impatient: Server) -> None:
    with connect(impatient) as connection:
        connection.sendall(head(100) + b'{"context"')
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 408")
        assert b'"limit":"body_seconds"' in answer


@pytest.mark.parametrize("sent", [b"", b"POST /v1/rank HT", b"POST /v1/rank HTTP/1.1\r\nHost: loc"])
def test_a_connection_without_a_request_is_closed(impatient: Server, sent: bytes) -> None:
    with connect(impatient) as connection:
        connection.sendall(sent)
        began = time.monotonic()
        assert closed(connection)
        assert time.monotonic() - began < 8


def test_a_second_request_that_never_ends_is_closed(impatient: Server) -> None:
    body = json.dumps(RANK).encode()
    with connect(impatient) as connection:
        connection.sendall(head(len(body)) + body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"POST /v1/rank HT")
        assert closed(connection)


def test_a_client_that_vanishes_leaves_nothing_behind(impatient: Server) -> None:
    body = json.dumps(RANK).encode()
    for _ in range(30):
        with connect(impatient) as connection:
            connection.sendall(head(len(body)) + body)
        with connect(impatient) as connection:
            connection.sendall(head(len(body)) + body[:20])
    end = time.monotonic() + 10
    while time.monotonic() < end:
        metrics = httpx.get(f"{impatient.url}/metrics").text
        if "tercet_open_requests 1.0" in metrics and 'tercet_queue_tokens{model="bi"} 0.0' in metrics:
            break
        time.sleep(0.1)
    else:
        pytest.fail(metrics)
    assert impatient.post("/v1/rank", RANK).status_code == 200


def open_requests(server: Server) -> int:
    """Requests that the server has not answered yet, without the one that asks."""
    return int(metric(server, "tercet_open_requests")) - 1


def metric(server: Server, name: str) -> float:
    """The value of a metric without labels."""
    found = re.search(rf"^{name} (\S+)", httpx.get(f"{server.url}/metrics").text, re.MULTILINE)
    assert found
    return float(found[1])


def wait_for(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Whether something holds before the time is over."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_a_client_that_never_reads_is_dropped(impatient: Server) -> None:
    body = json.dumps({"input": ["a dog"] * 4096, "model": "bi"}).encode()
    sent = 10  # their answers have 10 MB, and the buffers of a socket on both sides take 5 MB
    connections = []
    for _ in range(5):
        connection = socket.socket()
        connection.settimeout(20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", impatient.port))
        connection.sendall((head(len(body), "/v1/embeddings") + body) * sent)
        connections.append(connection)
    assert wait_for(lambda: open_requests(impatient) == 5, seconds=20)
    assert wait_for(lambda: open_requests(impatient) == 0, seconds=8)  # send_seconds is 2, request_seconds 20
    assert impatient.post("/v1/rank", RANK).status_code == 200
    for connection in connections:
        with connection:
            assert received(connection).count(b"HTTP/1.1 200") < sent


def test_a_long_body_and_a_long_answer_do_not_end_a_connection(impatient: Server) -> None:
    text = " ".join(SENTENCES) * 300
    with httpx.Client(base_url=impatient.url, timeout=30) as client:
        for _ in range(3):
            answer = client.post(
                "/v1/rank", json={"context": "cat", "candidates": [text] * 20, "model": "bi"}
            )
            assert answer.status_code == 200, answer.text[:300]


def test_endless_headers_are_cut_off(impatient: Server) -> None:
    with connect(impatient) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(2000):
                connection.sendall(b"a:b\r\n" * 1000)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /health/live HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_bytes_after_an_answer_do_not_keep_a_connection(impatient: Server, sent: bytes) -> None:
    with connect(impatient) as connection:
        connection.sendall(sent)
        assert connection.recv(65536).startswith(b"HTTP/1.1")
        connection.sendall(b"\r\n")
        began = time.monotonic()
        assert closed(connection)
        assert time.monotonic() - began < 8


def test_an_index_that_another_process_writes_is_busy(
    folder: Path, tmp_path: Path, impatient: Server
) -> None:
    with exclusive(folder / "faq.tercet" / LOCK, lambda: None):
        answer = impatient.post("/v1/indexes/faq/remove", {"ids": ["0"]})
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "index_busy")
    assert "retry-after" in answer.headers


def test_a_server_can_be_read_only(folder: Path, tmp_path: Path) -> None:
    with running_server(*tiny_options(folder, "bi"), "--read-only", log=tmp_path / "log") as server:
        for trick in ("", "%0A"):
            answer = server.post(f"/v1/indexes/faq/remove{trick}", {"ids": ["0"]})
            assert answer.status_code in (403, 404)
        assert server.post("/v1/search", {"index": "faq", "context": "a"}).status_code == 200


def test_connections_beyond_the_limit_are_closed(folder: Path, tmp_path: Path) -> None:
    options = ["--model", str(folder / "bi"), "--set", "limits.max_connections=5"]
    with running_server(*options, log=tmp_path / "log") as server:
        connections = [connect(server) for _ in range(5)]
        with connect(server) as refused:
            assert closed(refused)
        for connection in connections:
            connection.close()
        time.sleep(0.2)
        assert server.post("/v1/rank", RANK).status_code == 200


def test_other_sites_may_call_if_they_are_named(folder: Path, tmp_path: Path) -> None:
    options = ["--model", str(folder / "bi"), "--set", 'serve.cors_origins=["https://example.org"]']
    with running_server(*options, log=tmp_path / "log") as server:
        for origin, allowed in (("https://example.org", True), ("https://evil.example", False)):
            answer = httpx.get(f"{server.url}/v1/models", headers={"origin": origin})
            assert (answer.headers.get("access-control-allow-origin") == origin) is allowed


def test_too_many_requests_at_once_are_refused_with_a_time(impatient: Server) -> None:
    connections = [connect(impatient) for _ in range(40)]
    for connection in connections:
        connection.sendall(head(100))
    time.sleep(0.3)
    refused = impatient.post("/v1/rank", RANK)
    assert (refused.status_code, refused.json()["error"]["limit"]) == (429, "max_requests")
    assert int(refused.headers["retry-after"]) >= 1
    assert httpx.get(f"{impatient.url}/health/live").status_code == 200
    for connection in connections:
        connection.close()


def test_keys_have_scopes(folder: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"# who may do what\nread {READ}\n")
    environment = {"TERCET_API_KEYS": f"write {WRITE}"}
    options = [*tiny_options(folder, "bi"), "--keys-file", str(keys)]
    with running_server(*options, log=tmp_path / "log", environment=environment) as server:

        def status(path: str, body: object, **headers: str | bytes) -> int:
            return server.post(path, body, headers=headers).status_code

        reader, writer = ({"authorization": f"Bearer {key}"} for key in (READ, WRITE))
        change = {"candidates": [{"id": "new", "text": "new"}]}
        assert status("/v1/rank", RANK) == 401
        assert status("/v1/rank", RANK, authorization="Bearer reading-is-not-allowed") == 401
        assert status("/v1/rank", RANK, authorization=f"Bearer {READ}x") == 401
        assert status("/v1/rank", RANK, authorization="Bearer é".encode()) == 401
        assert status("/v1/rank", RANK, **reader) == 200
        assert status("/v1/rank", RANK, **{"x-api-key": READ}) == 200
        assert status("/v1/indexes/faq/update", change, **reader) == 403
        for trick in ("%0A", "%0D", "/", "%2F", "//", ";", "%00", "?x=1"):
            assert status(f"/v1/indexes/faq/update{trick}", change, **reader) in (307, 403, 404), trick
        assert status("//v1/indexes/faq/update", change, **reader) in (403, 404)
        assert status("/v1/indexes/faq/update", change, **writer) == 200
        assert status("/v1/indexes/faq/remove", {"ids": ["new"]}, **writer) == 200
        assert httpx.get(f"{server.url}/metrics").status_code == 401
        assert httpx.get(f"{server.url}/health/ready").status_code == 200
        assert httpx.get(server.url).status_code == 200
        log = server.log.read_text()
        assert READ not in log
        assert WRITE not in log


def serve(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected not to start."""
    return subprocess.run(
        [sys.executable, "-m", "tercet", "serve", *options],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["--host", "0.0.0.0"], {}, "needs API keys"),
        (["--host", "0.0.0.0"], {"TERCET_API_KEYS": "read short"}, "at least 16"),
        ([], {"TERCET_API_KEYS": "secret-without-a-scope"}, "must have the form"),
        (["--keys-file", "missing"], {}, "cannot be read"),
        (["--model", "no-such-folder/"], {}, "no-such-folder"),
        (["--model", "a b=bi"], {}, "the name of a model"),
        (["--model", "bi", "--model", "bi"], {}, "called bi"),
        (["--model", "bi", "--index", "missing.tercet"], {}, "missing.tercet"),
        (["--set", "limits.max_textz=1"], {}, "max_textz"),
        (["--set", "limits.max_texts=0"], {}, "at least 1"),
        ([], {"TERCET_LIMITS_MAX_K": "many"}, "max_k"),
        (["--port", "70000"], {}, "65535"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    options: list[str], environment: dict[str, str], reason: str
) -> None:
    found = serve("--port", "0", *options, **environment) if "--port" not in options else serve(*options)
    assert found.returncode == 1
    assert reason in found.stderr.replace("\n", " ")
    assert "secret-without-a-scope" not in found.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = serve("--port", str(port))
    assert found.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in found.stderr


def test_settings_come_from_file_environment_and_command_line(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text(
        f'[serve]\nmodels = {{ small = "{folder / "bi"}" }}\n[limits]\nmax_texts = 3\nmax_k = 3\n'
        "max_explained_characters = 3\n"
    )
    environment = {"TERCET_LIMITS_MAX_K": "4", "TERCET_LIMITS_MAX_EXPLAINED_CHARACTERS": "4"}
    options = ["--config", str(file), "--set", "limits.max_explained_characters=5"]
    with running_server(*options, log=tmp_path / "log", environment=environment) as server:
        assert [each["id"] for each in httpx.get(f"{server.url}/v1/models").json()["data"]] == ["small"]
        many = {"context": "a", "candidates": ["b"] * 4}
        assert "may have 3 items (max_texts)" in server.post("/v1/rank", many).json()["error"]["message"]
        long = {"context": "abc", "candidate": "def"}
        assert "may have 5 characters" in server.post("/v1/explain", long).json()["error"]["message"]


def test_texts_are_logged_only_if_asked(folder: Path, tmp_path: Path) -> None:
    options = ["--model", str(folder / "bi"), "--set", "serve.log_texts=true"]
    with running_server(*options, log=tmp_path / "log") as server:
        server.post("/v1/rank", {"context": "swordfish\x1b[31m", "candidates": ["b"]})
        assert "swordfish" in server.log.read_text()
        assert "\x1b" not in server.log.read_text()


def test_every_accepted_request_is_answered_after_sigterm(folder: Path, tmp_path: Path) -> None:
    with running_server(*tiny_options(folder), log=tmp_path / "log") as server:
        outcomes: list[str] = []

        def ask(number: int) -> None:
            try:
                while True:
                    outcomes.append(
                        str(server.post("/v1/rank", {**RANK, "context": f"cat {number}"}).status_code)
                    )
            except (httpx.ConnectError, httpx.ReadError, httpx.WriteError):
                outcomes.append("refused")  # nobody listens any more

        with ThreadPoolExecutor(16) as pool:
            asking = [pool.submit(ask, number) for number in range(16)]
            time.sleep(1)
            server.process.send_signal(signal.SIGTERM)
            for each in asking:
                each.result(timeout=30)
        assert server.process.wait(30) == 0
        accepted = server.log.read_text().count("POST /v1/rank")
    assert set(outcomes) == {"200", "refused"}
    assert outcomes.count("200") == accepted


def test_the_index_has_every_acknowledged_candidate_after_a_kill(folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "killed.tercet"
    with tercet.Retriever(folder / "bi", path=index) as retriever:
        retriever.add(SENTENCES)
    acknowledged: list[str] = []
    for round_ in range(3):
        options = ["--model", str(folder / "bi"), "--index", str(index)]
        with running_server(*options, log=tmp_path / "log") as server:
            written_before = len(acknowledged)

            def write(name: str, server: Server = server) -> None:
                for number in range(10_000):
                    id_ = f"{name}-{number}"
                    try:
                        body = {"candidates": [{"id": id_, "text": f"the cat {id_}"}]}
                        answer = server.post("/v1/indexes/killed/add", body)
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 200:
                        acknowledged.append(id_)

            with ThreadPoolExecutor(4) as pool:
                writers = [pool.submit(write, f"{round_}-{letter}") for letter in "abcd"]
                while len(acknowledged) < written_before + 15:
                    time.sleep(0.01)
                server.process.kill()
                for each in writers:
                    each.result(timeout=30)
        with tercet.Retriever.open(index, folder / "bi") as retriever:
            assert not [id_ for id_ in acknowledged if id_ not in retriever]
            assert retriever.problems() == []


def test_workers_share_an_index_and_their_metrics(folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "shared.tercet"
    with tercet.Retriever(folder / "bi", path=index) as retriever:
        retriever.add(SENTENCES)
    options = ["--model", str(folder / "bi"), "--index", str(index), "--workers", "2"]
    with running_server(*options, log=tmp_path / "log") as server:

        def write(number: int) -> int:
            body = {"candidates": [{"id": f"new-{number}", "text": f"the cat number {number}"}]}
            return server.post("/v1/indexes/shared/add", body).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(write, range(40))) == {200}
        sizes = {httpx.get(f"{server.url}/v1/indexes").json()["data"][0]["size"] for _ in range(20)}
        assert sizes == {len(SENTENCES) + 40}
        metrics = httpx.get(f"{server.url}/metrics").text
        assert 'tercet_requests_total{route="/v1/indexes/{index}/add",status="200"} 40.0' in metrics
        server.process.terminate()
        assert server.process.wait(30) == 0


def test_the_memory_of_all_workers_is_added_up(folder: Path, tmp_path: Path) -> None:
    options = ["--model", str(folder / "bi"), "--workers", "2"]
    with running_server(*options, log=tmp_path / "log") as server:
        workers = workers_of(server)
        assert len(workers) == 2
        most = 0.8 * sum(map(resident_bytes, workers))
        assert wait_for(lambda: metric(server, "tercet_memory_bytes") > most, seconds=20)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def workers_of(server: Server) -> list[int]:
    """The process ids of the workers."""
    parent = server.process.pid
    children = map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return [pid for pid in children if "spawn_main" in _command_line(pid)]


def test_workers_stop_while_they_load(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tercet", "serve", "--port", "0", "--workers", "2"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--model", str(folder / "bi")], stderr=output)
    while "Loading" not in log.read_text():
        time.sleep(0.02)
    time.sleep(0.5)
    process.terminate()
    assert process.wait(60) == 0


def test_workers_are_replaced_and_end_with_their_parent(folder: Path, tmp_path: Path) -> None:
    options = ["--model", str(folder / "bi"), "--workers", "2"]
    with running_server(*options, log=tmp_path / "log") as server:
        os.kill(workers_of(server)[0], signal.SIGKILL)
        statuses = set()
        for _ in range(100):
            statuses.add(httpx.get(f"{server.url}/health/ready").status_code)
            time.sleep(0.05)
        assert statuses == {200}
        server.process.kill()
        server.process.wait()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                httpx.get(f"{server.url}/health/live", timeout=2)
            except httpx.HTTPError:
                break
            time.sleep(0.2)
        else:
            pytest.fail("a worker still answers")


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_a_worker_that_cannot_start_ends_the_server(folder: Path) -> None:
    found = serve("--port", "0", "--workers", "2", "--model", "no-such-folder/")
    assert found.returncode == 1
    assert "no-such-folder" in found.stderr
