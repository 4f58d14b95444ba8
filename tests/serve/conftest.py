"""A server of the packaged models and of an index of the sample FAQ."""

from collections.abc import Iterator

import pytest
from tests.serve.running import Server, running_server

import tercet
from tercet.data.sample import questions

FAQ = [
    {"id": f"q{position}", "text": entry.question, "topic": entry.topic}
    for position, entry in enumerate(questions("en")[:40])
]
"""The candidates of the index ``faq``; the index ``notes`` is for tests that write."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: tercet.BiEncoder) -> Iterator[Server]:
    """A server of bi, poly, cross, faq and notes. It listens on 127.0.0.1 and needs no key."""
    pytest.importorskip("fastapi", reason="needs tercet[serve]")
    folder = tmp_path_factory.mktemp("server")
    for name, candidates in (("faq", FAQ), ("notes", FAQ[:2])):
        retriever = tercet.Retriever(minilm, path=folder / f"{name}.tercet", lexical=False)
        retriever.add(candidates)
        retriever.close()
    models = [word for name in ("bi", "poly", "cross") for word in ("--model", name)]
    indexes = [word for name in ("faq", "notes") for word in ("--index", str(folder / f"{name}.tercet"))]
    with running_server(*models, *indexes, log=folder / "log.txt") as running:
        yield running


@pytest.fixture(scope="session")
def poly() -> tercet.PolyEncoder:
    """The packaged poly-encoder."""
    scorer = tercet.load("poly", device="cpu")
    assert isinstance(scorer, tercet.PolyEncoder)
    return scorer


@pytest.fixture(scope="session")
def cross() -> tercet.CrossEncoder:
    """The packaged cross-encoder."""
    scorer = tercet.load("cross", device="cpu")
    assert isinstance(scorer, tercet.CrossEncoder)
    return scorer
