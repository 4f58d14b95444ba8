"""An index that is moved, deleted or replaced while the server runs: a 503 that says so, until it is back."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.conftest import SENTENCES
from tests.serve.running import Server, running_server, tiny_models

import tercet
from tercet.errors import BrokenIndexError, InputError
from tercet.serve.indexes import MissingIndexError, ServedIndex

REQUESTS = {
    "/v1/search": {"index": "faq", "context": "cat"},
    "/v1/indexes/faq/add": {"candidates": ["a dog"]},
    "/v1/indexes/faq/update": {"candidates": [{"id": "0", "text": "a dog"}]},
    "/v1/indexes/faq/remove": {"ids": ["0"]},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def served(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server of the indexes ``faq`` and ``other``, and the folder of ``faq``."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("faq", "other"):
        shutil.copytree(models / "faq.tercet", folder / f"{name}.tercet")
    indexes = [word for name in ("faq", "other") for word in ("--index", str(folder / f"{name}.tercet"))]
    with running_server("--model", str(models / "bi"), *indexes, log=folder / "log") as server:
        yield server, folder / "faq.tercet"


def moved(index: Path, aside: Path) -> None:
    index.rename(aside)


def replaced(index: Path, aside: Path) -> None:
    index.rename(aside)
    shutil.copytree(aside, index)


@pytest.fixture(params=[moved, replaced])
def missing(request: pytest.FixtureRequest, served: tuple[Server, Path]) -> Iterator[Server]:
    """The server while ``faq`` is not the index that it opened."""
    server, index = served
    aside = index.with_name("aside.tercet")
    change: Callable[[Path, Path], None] = request.param
    change(index, aside)
    yield server
    shutil.rmtree(index, ignore_errors=True)
    aside.rename(index)


@pytest.mark.parametrize("path", REQUESTS)
def test_requests_for_a_missing_index_are_a_503(missing: Server, path: str) -> None:
    answer = missing.post(path, REQUESTS[path])
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (503, "index_missing")
    assert error["message"] == (
        "the index faq was moved, deleted or replaced: put it back, or restart the server"
    )
    assert "retry-after" in answer.headers


def test_a_missing_index_is_not_listed_and_makes_the_server_not_ready(missing: Server) -> None:
    listed = httpx.get(f"{missing.url}/v1/indexes").json()["data"]
    assert [each["id"] for each in listed] == ["other"]
    ready = httpx.get(f"{missing.url}/health/ready")
    assert (ready.status_code, ready.json()) == (503, {"status": "index_missing", "indexes": ["faq"]})
    assert httpx.get(f"{missing.url}/health/live").status_code == 200
    assert tercet.Client(missing.url).ready() is False


def test_other_indexes_and_models_are_still_answered(missing: Server) -> None:
    assert missing.post("/v1/search", {"index": "other", "context": "cat"}).status_code == 200
    assert missing.post("/v1/rank", {"context": "cat", "candidates": SENTENCES}).status_code == 200


def test_an_index_that_was_put_back_is_searched_and_changed_again(served: tuple[Server, Path]) -> None:
    server, index = served
    aside = index.with_name("aside.tercet")
    index.rename(aside)
    assert server.post("/v1/search", REQUESTS["/v1/search"]).status_code == 503
    aside.rename(index)
    assert server.post("/v1/search", REQUESTS["/v1/search"]).status_code == 200
    added = server.post("/v1/indexes/faq/add", {"candidates": [{"id": "back", "text": "a dog"}]}).json()
    assert added["size"] == len(SENTENCES) + 1
    assert server.post("/v1/indexes/faq/remove", {"ids": ["back"]}).status_code == 200
    assert httpx.get(f"{server.url}/health/ready").json() == {"status": "ready"}


def test_a_deleted_index_is_missing_although_its_files_are_still_open(models: Path, tmp_path: Path) -> None:
    index = shutil.copytree(models / "faq.tercet", tmp_path / "gone.tercet")
    options = ["--model", str(models / "bi"), "--index", str(index)]
    with running_server(*options, log=tmp_path / "log") as server:
        shutil.rmtree(index)
        answer = server.post("/v1/search", {"index": "gone", "context": "cat"})
        assert answer.json()["error"]["type"] == "index_missing"
        assert not index.exists()


def test_a_folder_that_vanishes_during_a_call_is_missing_too(models: Path, tmp_path: Path) -> None:
    index = shutil.copytree(models / "faq.tercet", tmp_path / "faq.tercet")
    with tercet.Retriever.open(index, models / "bi") as retriever:
        served = ServedIndex("faq", retriever, model="bi", reranker=None)

        def vanish(ids: object) -> None:
            index.rename(tmp_path / "aside.tercet")
            raise BrokenIndexError("a file is missing")

        retriever.remove = vanish  # type: ignore[method-assign, assignment]
        with pytest.raises(MissingIndexError):
            asyncio.run(served.remove(["0"]))


def test_other_errors_of_an_index_stay_what_they_are(models: Path, tmp_path: Path) -> None:
    index = shutil.copytree(models / "faq.tercet", tmp_path / "faq.tercet")
    with tercet.Retriever.open(index, models / "bi") as retriever:
        served = ServedIndex("faq", retriever, model="bi", reranker=None)
        with pytest.raises(InputError, match="unknown"):
            asyncio.run(served.remove(["unknown"]))
