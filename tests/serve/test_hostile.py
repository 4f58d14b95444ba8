"""Thousands of hostile bodies: every answer is a 2xx or a 4xx of one shape, and memory stays flat."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
from tests.serve.running import Server, running_server, tiny_models, tiny_options

pytestmark = pytest.mark.slow

BODIES = 2000
VALID: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": ["a dog", "the cat"], "model": "bi", "dimensions": 4},
    "/v1/rerank": {"query": "a dog", "documents": ["the cat", {"text": "a dog"}], "top_n": 1},
    "/v2/rerank": {"query": "a dog", "documents": ["the cat"], "return_documents": True},
    "/rerank": {"query": "a dog", "texts": ["the cat"], "raw_scores": True},
    "/v1/score": {"contexts": ["a dog", ["the", "cat"]], "candidates": ["a", "b"], "pairs": True},
    "/v1/rank": {"context": ["a dog", "ran"], "candidates": ["the cat", "a"], "k": 2, "model": "poly"},
    "/v1/explain": {"context": "a dog", "candidate": "the cat", "model": "poly"},
    "/v1/search": {"index": "faq", "context": "a dog", "k": 2, "where": {"length": {">": 3}}, "rerank": 2},
    "/v1/indexes/faq/update": {"candidates": [{"id": "1", "text": "a dog", "topic": ["x", {"y": 1}]}]},
    "/v1/indexes/faq/remove": {"ids": ["missing"]},
}
VALUES: list[Any] = [
    *(None, True, 0, -1, 1, 10**6, 10**18, 10**40, 1.5, 1e308, "", " ", "\0", "\u202e", "👩‍👩‍👧‍👦" * 30),
    *(
        "a" * 5000,
        "한국어 " * 200,
        "\\",
        "'; DROP TABLE items; --",
        "../../etc/passwd",
        "{{7*7}}",
        "%s%n",
        "\ufeff",
    ),
    *([], [[]], {}, {"": ""}, ["a"] * 300, [None], [[["a"]]], {"a": {"b": {"c": []}}}, {"text": 5}, [1, "a"]),
    *({"$where": "1"}, {"length": {">": "x"}}, {"length": [1] * 500}, {"a" * 300: 1}, {"length": {"~": 1}}),
]
RAW = [
    *(b"", b" ", b"\xff\xfe", b"\0" * 100, b"[" * 2000, b'{"a":' * 2000, b"1" * 5000, b"-", b"1e999", b"NaN"),
    *(
        b'{"context": "\\ud83d"}',
        b'"',
        b"{}" * 100,
        b"\x1f\x8b\x08\x00",
        b"<xml/>",
        b"a=b&c=d",
        b"nul",
        b"[1,]",
    ),
    *(b'{"context": "a", "context": "b", "candidates": ["c"]}', '{"context": "é"}'.encode("latin-1")),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tiny_models(tmp_path_factory.mktemp("models"))
    with running_server(*tiny_options(folder), log=folder / "log") as found:
        yield found


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from paths_in(child, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def hostile(rng: random.Random) -> tuple[str, bytes]:
    """A path and a body: bytes, or a valid request with something wrong in it."""
    path = rng.choice(list(VALID))
    if rng.random() < 0.15:
        return path, rng.choice(RAW)
    body = VALID[path]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        body = changed(body, rng.choice(list(paths_in(body))), rng.choice(VALUES))
    if isinstance(body, dict) and rng.random() < 0.1:
        body = {**body, rng.choice(["x", "model", "k", ""]): rng.choice(VALUES)}
    written = json.dumps(body).encode()
    if rng.random() < 0.05:
        written = written[: rng.randrange(len(written))]
    return path, written


def memory(server: Server) -> float:
    found = re.search(r"^tercet_memory_bytes (\S+)", httpx.get(f"{server.url}/metrics").text, re.MULTILINE)
    assert found
    return float(found[1])


def test_no_body_is_a_server_error_and_memory_stays_flat(server: Server) -> None:
    rng = random.Random(26)
    sizes, statuses = [], set()
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for number in range(BODIES):
            path, body = hostile(rng)
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            statuses.add(answer.status_code)
            assert answer.status_code < 500, (path, body[:500], answer.text)
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error"}, (path, body[:500])
            if number % 100 == 0:
                sizes.append(memory(server))
    assert {200, 400, 404, 413, 422} <= statuses
    half = len(sizes) // 2  # memory rises and falls by 100 MB between garbage collections
    assert min(sizes[half:]) < min(sizes[half // 2 : half]) + 50e6
    assert "Traceback" not in server.log.read_text()


def test_the_index_is_still_whole(server: Server) -> None:
    answer = server.post("/v1/search", {"index": "faq", "context": "a dog", "k": 5})
    assert len(answer.json()["hits"]) == 5
