"""Kills and full disks while an index is written: every acknowledged change is there afterwards."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.databases.places import option
from tests.kill.children import Ended, Tell, run_child

import tercet
from tercet.index import store

SECONDS = 0.25
"""The longest time until a kill."""
CHANGES = 12
"""Changes that a process makes if nobody kills it."""

Texts = dict[str, str]

store.BUFFER_SIZE = 50  # segments are written often


class Writing:
    """An index, and the candidates that it must have."""

    def __init__(
        self,
        folder: Path,
        scorer: tercet.BiEncoder,
        *,
        address: str | None = None,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._place = str(folder / "index.tercet") if address is None else address
        self._scorer, self._settle = scorer, settle
        self._texts: Texts = {}
        tercet.Retriever(scorer, **option(self._place)).close()

    def kill(self, chance: random.Random) -> Ended:
        """Kill a process that changes the index, then check the index."""
        return self._once(chance, seconds=chance.uniform(0, SECONDS))

    def run(self, seed: float, **options: Any) -> Ended:
        """Run a process that changes the index, then check the index."""
        return self._once(random.Random(seed), **options)

    def fill_disk(self, chance: random.Random, max_bytes: int) -> Ended:
        """Run a process that changes the index until the disk is full, then check the index."""
        return self._once(chance, max_bytes=max_bytes)

    def _once(self, chance: random.Random, **options: Any) -> Ended:
        seed = chance.random()
        ended = run_child(lambda tell: self._change(random.Random(seed), tell), **options)
        self._settle()  # a server goes on with what a killed process has sent
        self._check([line for line in ended.told if "change" in line or line == "done"])
        return ended

    def _change(self, chance: random.Random, tell: Tell) -> None:
        texts = dict(self._texts)
        with tercet.Retriever.open(self._place, self._scorer) as retriever:
            for _ in range(CHANGES):
                change = _draw(chance, texts)
                tell({"change": change})
                _apply(retriever, change)
                tell("done")
                texts = _after(texts, change)

    def _check(self, told: list[Any]) -> None:
        """The index has all acknowledged changes, and the last one that was started wholly or not at all."""
        for position, line in enumerate(told):
            if line != "done" and told[position + 1 : position + 2] == ["done"]:
                self._texts = _after(self._texts, line["change"])
        possible = [self._texts]
        if told and told[-1] != "done":
            possible.append(_after(self._texts, told[-1]["change"]))
        with tercet.Retriever.open(self._place, self._scorer) as retriever:
            retriever.repair()
            problems = retriever.problems()
            if problems:
                raise SystemExit(f"problems after a repair: {problems}")
            found = {item.id: item.text for item in retriever}
            if found not in possible:
                raise SystemExit(f"{len(found)} candidates are neither the last state nor the next one")
            for id_ in list(found)[-2:]:
                hits = retriever.search(found[id_], len(found), mode="lexical")
                if id_ not in [hit.id for hit in hits]:
                    raise SystemExit(f"the lexical index does not find {id_}")
        self._texts = found


def _draw(chance: random.Random, texts: Texts) -> dict[str, Any]:
    kind = chance.choice(["add", "add", "add", "update", "remove", "compact"])
    some = chance.sample(sorted(texts), min(len(texts), chance.randint(1, 10)))
    new = [str(chance.getrandbits(48)) for _ in range(chance.randint(1, 30))]
    if kind == "add" and len(texts) < 400:
        return {"kind": "add", "texts": {id_: _text(chance) for id_ in new}}
    if kind == "update":
        return {"kind": "update", "texts": {id_: _text(chance) for id_ in (*some, *new[:2])}}
    if kind == "remove" and some:
        return {"kind": "remove", "ids": some}
    return {"kind": "compact"}


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(["cat", "dog", "bird", "house", "river", "old", "red"], k=6))


def _apply(retriever: tercet.Retriever, change: dict[str, Any]) -> None:
    items = [{"id": id_, "text": text} for id_, text in change.get("texts", {}).items()]
    match change["kind"]:
        case "add":
            retriever.add(items)
        case "update":
            retriever.update(items)
        case "remove":
            retriever.remove(change["ids"])
        case _:
            retriever.compact(graph_threshold=100)


def _after(texts: Texts, change: dict[str, Any]) -> Texts:
    removed = set(change.get("ids", ()))
    return {id_: text for id_, text in texts.items() if id_ not in removed} | change.get("texts", {})
