"""The coroutines of scorers and retrievers."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.errors import InputError
from tercet.index import Item
from tests.conftest import SENTENCES

TWINS = {
    tercet.Scorer: ("score", "score_many", "score_pairs", "rank", "rank_many", "encode"),
    tercet.BiEncoder: ("score", "score_many", "score_pairs", "rank", "rank_many", "encode"),
    tercet.Retriever: ("search", "search_many", "add", "update", "remove"),
}


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner, names in TWINS.items() for name in names],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_coroutine_takes_the_arguments_of_its_method(owner: type, name: str) -> None:
    method, coroutine = getattr(owner, name), getattr(owner, f"a{name}")
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.signature(coroutine) == inspect.signature(method)


def test_coroutines_return_what_the_methods_return(tiny: tercet.BiEncoder) -> None:
    async def results() -> list[Any]:
        return [
            await tiny.ascore("a dog", SENTENCES),
            await tiny.ascore_many(SENTENCES[:2], SENTENCES),
            await tiny.ascore_pairs(SENTENCES, SENTENCES[::-1]),
            await tiny.aencode(SENTENCES, dimensions=4, normalize=True),
        ]

    expected = [
        tiny.score("a dog", SENTENCES),
        tiny.score_many(SENTENCES[:2], SENTENCES),
        tiny.score_pairs(SENTENCES, SENTENCES[::-1]),
        tiny.encode(SENTENCES, dimensions=4, normalize=True),
    ]
    for ours, theirs in zip(asyncio.run(results()), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert asyncio.run(tiny.arank("a dog", SENTENCES, 3)) == tiny.rank("a dog", SENTENCES, 3)
    many = asyncio.run(tiny.arank_many(["a dog"], SENTENCES, k=2))
    assert many == tiny.rank_many(["a dog"], SENTENCES, k=2)


def test_many_concurrent_calls_over_one_scorer_do_not_mix(tiny: tercet.BiEncoder) -> None:
    async def together() -> list[Any]:
        return await asyncio.gather(*(tiny.aencode([text]) for text in SENTENCES * 8))

    vectors = np.concatenate(asyncio.run(together()))
    np.testing.assert_allclose(vectors, np.tile(tiny.encode(SENTENCES), (8, 1)), atol=1e-6)


class Gate:
    """Texts that wait in the middle until the gate is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = Event(), Event()

    def texts(self) -> Iterator[str]:
        yield SENTENCES[0]
        self.reached.set()
        assert self.opened.wait(timeout=30)
        yield SENTENCES[1]


class GatedTurns(Sequence[str]):
    """The turns of one context that wait at the gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __getitem__(self, position: Any) -> Any:
        return SENTENCES[:2][position]

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[str]:
        return self.gate.texts()


GATED: dict[str, Callable[[Any, Gate], Awaitable[Any]]] = {
    "aencode": lambda scorer, gate: scorer.aencode(gate.texts()),
    "ascore": lambda scorer, gate: scorer.ascore("a dog", gate.texts()),
    "ascore_many": lambda scorer, gate: scorer.ascore_many(gate.texts(), SENTENCES),
    "ascore_pairs": lambda scorer, gate: scorer.ascore_pairs(gate.texts(), SENTENCES[:2]),
    "arank": lambda scorer, gate: scorer.arank("a dog", gate.texts()),
    "arank_many": lambda scorer, gate: scorer.arank_many(gate.texts(), SENTENCES),
    "asearch": lambda retriever, gate: retriever.asearch(GatedTurns(gate)),
    "asearch_many": lambda retriever, gate: retriever.asearch_many(gate.texts()),
    "aadd": lambda retriever, gate: retriever.aadd(gate.texts()),
    "aupdate": lambda retriever, gate: retriever.aupdate({"id": text, "text": text} for text in gate.texts()),
    "aremove": lambda retriever, gate: retriever.aremove(gate.texts()),
}


@pytest.mark.parametrize("name", GATED)
def test_the_event_loop_runs_during_every_coroutine(name: str, tiny: tercet.BiEncoder) -> None:
    gate = Gate()

    async def open_gate() -> None:  # would never run if the coroutine blocked the loop
        while not gate.reached.is_set():
            await asyncio.sleep(0.001)
        gate.opened.set()

    async def both(owner: Any) -> None:
        await asyncio.wait_for(asyncio.gather(GATED[name](owner, gate), open_gate()), timeout=30)

    with tercet.Retriever(tiny) as retriever:
        retriever.add([Item(text, text) for text in SENTENCES[:2]])
        asyncio.run(both(retriever if hasattr(retriever, name) else tiny))


def test_every_coroutine_has_a_gated_call() -> None:
    assert set(GATED) == {f"a{name}" for names in TWINS.values() for name in names}


def test_a_cancelled_write_is_completed(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    gate = Gate()

    async def cancel() -> None:
        task = asyncio.create_task(tiny.aencode(gate.texts(), tmp_path / "vectors.npy"))
        while not gate.reached.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.opened.set()

    asyncio.run(cancel())  # waits for the thread
    assert np.load(tmp_path / "vectors.npy").shape == (2, 16)


def test_an_error_reaches_the_awaiting_code(tiny_folder: Callable[[str], Path]) -> None:
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    with pytest.raises(InputError, match="a CrossEncoder has no vectors"):
        asyncio.run(cross.aencode(SENTENCES))


def test_a_retriever_is_filled_searched_and_changed(tiny: tercet.BiEncoder) -> None:
    async def use(retriever: tercet.Retriever) -> list[Any]:
        await retriever.aadd(SENTENCES)
        many = await asyncio.gather(*(retriever.asearch(text, 1) for text in SENTENCES))
        assert [hits[0].text for hits in many] == SENTENCES
        await retriever.aremove([many[0][0].id])
        await retriever.aupdate([Item("new", "a river")])
        return await retriever.asearch_many(["a river", SENTENCES[1]], k=1)

    with tercet.Retriever(tiny) as retriever:
        found = asyncio.run(use(retriever))
        assert len(retriever) == len(SENTENCES)
    assert [hits[0].text for hits in found] == ["a river", SENTENCES[1]]
