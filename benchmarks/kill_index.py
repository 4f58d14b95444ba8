"""Kill −9 a process that writes to an index, again and again, and look at what is left.

A child adds, updates, removes and compacts at random, and says in a synced file what it begins and what it
has done. After each kill the index must hold the state after what was done last, or what was begun then.

python benchmarks/kill_index.py --rounds 500
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tercet.index import store as store_module
from tercet.index.items import Item
from tercet.index.repair import problems
from tercet.index.store import Store
from tercet.records import Codes

WIDTH = 8
store_module.FEW = 40  # so that segments come and go


def vector(text: str) -> Any:
    drawn = np.random.default_rng(list(text.encode())).standard_normal(WIDTH, dtype=np.float32)
    return drawn / np.linalg.norm(drawn)


def after(state: dict[str, str], step: dict[str, Any]) -> dict[str, str]:
    """The texts by their ids once a step is done."""
    kept = {name: text for name, text in state.items() if name not in step.get("remove", [])}
    return kept | step.get("put", {})


def next_step(state: dict[str, str], chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(["put", "put", "put", "update", "remove", "compact"])
    there = sorted(state)
    if kind == "put" or len(there) < 5:
        return {
            "put": {f"id {chance.random()}": f"text {chance.random()}" for _ in range(chance.randint(1, 30))}
        }
    if kind == "update":
        return {"put": {name: f"text {chance.random()}" for name in chance.sample(there, 3)}}
    if kind == "remove":
        return {"remove": chance.sample(there, chance.randint(1, len(there) // 2))}
    return {"compact": True}


def do(store: Store, step: dict[str, Any]) -> None:
    if "put" in step:
        items = [Item(name, text, {}) for name, text in step["put"].items()]
        store.update(items, np.stack([vector(item.text) for item in items]))
    elif "remove" in step:
        store.remove(step["remove"])
    else:
        store.compact(graph_from=50)


def child(folder: Path, seed: int) -> None:
    """Write until killed."""
    chance = random.Random(seed)
    store = Store(folder / "some.tercet")
    state = read_state(folder)
    with (folder / "log.jsonl").open("a") as log:
        while True:
            step = next_step(state, chance)
            say(log, {"begun": step})
            do(store, step)
            state = after(state, step)
            say(log, {"done": True})


def say(log: Any, line: dict[str, Any]) -> None:
    log.write(json.dumps(line) + "\n")
    log.flush()
    os.fsync(log.fileno())


def read_state(folder: Path) -> dict[str, str]:
    state: dict[str, str] = json.loads((folder / "state.json").read_text())
    return state


def found(store: Store) -> dict[str, str]:
    """Every text by its id, if its own vector finds it and nothing is wrong."""
    wrong = problems(store)
    if wrong:
        raise SystemExit(f"broken: {wrong}")
    items = store.items(np.array(store.database.column("candidates"), dtype=np.int64))
    texts = {item.id: item.text for item in items.values()}
    if texts:
        asked = np.stack([vector(text) for text in texts.values()])[:, None]
        best = store.search(Codes(asked, np.ones((len(texts), 1), dtype=np.bool_)), 1, exact=True).ids[:, 0]
        if [items[number].id for number in best.tolist()] != list(texts):
            raise SystemExit("a candidate is not found by its own vector")
    return texts


def kill_once(folder: Path, seed: int) -> str:
    log = folder / "log.jsonl"
    log.write_text("")
    writer = subprocess.Popen([sys.executable, __file__, "--child", str(seed), "--folder", str(folder)])
    while not log.read_text():
        if writer.poll() is not None:
            raise SystemExit(f"the writer ended by itself with {writer.returncode}")
        time.sleep(0.01)
    time.sleep(random.Random(seed).random() * 0.6)
    writer.kill()
    writer.wait()
    state, lines = read_state(folder), [json.loads(line) for line in log.read_text().splitlines() if line]
    for place, line in enumerate(lines):
        if "begun" in line and {"done": True} in lines[place + 1 : place + 2]:
            state = after(state, line["begun"])
    open_step = lines[-1].get("begun") if lines else None
    store = Store(folder / "some.tercet")
    texts = found(store)
    with store.writer():  # sweeps, and lets the index of words catch up
        pass
    said = {number for number, _ in store.search_words("text", 10_000)}
    if said != set(store.database.column("candidates")):
        raise SystemExit("the index of words has something else than the store")
    store.close()
    if texts != state and (open_step is None or texts != after(state, open_step)):
        raise SystemExit(f"round {seed}: {len(texts)} candidates are neither the last state nor the next one")
    (folder / "state.json").write_text(json.dumps(texts))
    return (
        "between steps"
        if open_step is None
        else "before its commit"
        if texts == state
        else "after its commit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", type=int)
    options = parser.parse_args()
    if options.child is not None:
        child(options.folder, options.child)
    with TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        Store.create(folder / "some.tercet", WIDTH).close()
        (folder / "state.json").write_text("{}")
        moments: dict[str, int] = {}
        for seed in range(options.rounds):
            moment = kill_once(folder, seed)
            moments[moment] = moments.get(moment, 0) + 1
        told = ", ".join(f"{count} {moment}" for moment, count in sorted(moments.items()))
        print(f"{options.rounds} rounds: every committed candidate was there, nothing else ({told})")


if __name__ == "__main__":
    main()
