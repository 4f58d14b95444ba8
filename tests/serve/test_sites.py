"""Web pages and a server without keys: another site reaches it neither by its own name nor from its pages."""

from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.serve.running import Server, running_server, tiny_models

KEY = "reading-is-allowed"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_models(tmp_path_factory.mktemp("models")) / "bi")


@pytest.fixture(scope="module")
def server(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = [
        *("--model", model, "--set", 'serve.allowed_hosts=["Workstation.lan"]'),
        *("--set", 'serve.cors_origins=["https://app.example.org"]'),
    ]
    with running_server(*options, log=tmp_path_factory.mktemp("log") / "log") as found:
        yield found


def status(server: Server, path: str = "/v1/models", **headers: str) -> tuple[int, str]:
    """The status of an answer, and the type of its error."""
    answer = httpx.get(server.url + path, headers=headers)
    return answer.status_code, "" if answer.status_code == 200 else answer.json()["error"]["type"]


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:9000", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8080"),
        *("workstation.lan", "WORKSTATION.LAN:8080"),
    ],
)
def test_names_of_this_machine_are_answered(server: Server, host: str) -> None:
    assert status(server, host=host) == (200, "")


@pytest.mark.parametrize("path", ["/", "/v1/models", "/metrics", "/health/ready", "/openapi.json"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example"])
def test_a_name_that_another_site_points_here_is_not_answered(server: Server, host: str, path: str) -> None:
    assert status(server, path, host=host) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["[::1", "[::2]", ":80", "localhost:80:80", "localhost@evil.example", "a b"])
def test_a_host_of_another_form_is_not_answered(server: Server, host: str) -> None:
    assert status(server, host=host) == (421, "wrong_host")


@pytest.mark.parametrize(
    "origin",
    [
        *("http://localhost:8080", "http://127.0.0.1:3000", "http://[::1]:1", "http://workstation.lan"),
        "https://app.example.org",
    ],
)
def test_pages_of_this_machine_and_named_sites_may_call(server: Server, origin: str) -> None:
    assert status(server, origin=origin) == (200, "")


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "https://evil.example",
            "http://evil.example:8080",
            "null",
            "localhost",
            "file://",
            "http://",
            "http://:80",
        ),
        *("http://app.example.org", "https://app.example.org.evil.example", "http://localhost.evil.example"),
    ],
)
def test_pages_of_other_sites_may_not_call(server: Server, origin: str) -> None:
    assert status(server, origin=origin) == (403, "foreign_origin")


def test_every_origin_may_call_if_the_settings_say_so(model: str, tmp_path: Path) -> None:
    options = ["--model", model, "--set", 'serve.cors_origins=["*"]']
    with running_server(*options, log=tmp_path / "log") as server:
        assert status(server, origin="https://evil.example") == (200, "")


def test_with_keys_any_name_and_origin_is_answered(model: str, tmp_path: Path) -> None:
    environment = {"TERCET_API_KEYS": f"read {KEY}"}
    options = ["--model", model]
    with running_server(*options, log=tmp_path / "log", environment=environment) as server:
        headers = {"host": "search.example.org", "origin": "https://example.org"}
        assert status(server, **headers) == (401, "unauthorized")
        assert status(server, **headers, authorization=f"Bearer {KEY}") == (200, "")
