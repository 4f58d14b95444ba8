"""Kill a process that writes to an index with SIGKILL, many times, and check what is left.

A child process adds, updates, removes and compacts at random. It logs each step to a synced file before and
after it. After each kill, the index must hold the state after the last finished step, or after the step that
was under way.

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
from tercet.index.store import Store
from tercet.index.verify import problems
from tercet.records import Codes, Floats

WIDTH = 8
INDEX, LOG, STATE = "some.tercet", "log.jsonl", "state.json"
store_module.BUFFER_SIZE = 40  # small, so that many segments are written


def vector(text: str) -> Floats:
    """A random unit vector that is determined by the text."""
    drawn = np.random.default_rng(list(text.encode())).standard_normal(WIDTH, dtype=np.float32)
    return drawn / np.linalg.norm(drawn)


def after(state: dict[str, str], step: dict[str, Any]) -> dict[str, str]:
    """The texts by id after a step."""
    kept = {id_: text for id_, text in state.items() if id_ not in step.get("remove", [])}
    return kept | step.get("put", {})


def next_step(state: dict[str, str], rng: random.Random) -> dict[str, Any]:
    """A random step: texts to put, ids to remove, or a compaction."""
    kind = rng.choice(["put", "put", "put", "update", "remove", "compact"])
    ids = sorted(state)
    if kind == "put" or len(ids) < 5:
        return {"put": {f"id {rng.random()}": f"text {rng.random()}" for _ in range(rng.randint(1, 30))}}
    if kind == "update":
        return {"put": {id_: f"text {rng.random()}" for id_ in rng.sample(ids, 3)}}
    if kind == "remove":
        return {"remove": rng.sample(ids, rng.randint(1, len(ids) // 2))}
    return {"compact": True}


def execute(store: Store, step: dict[str, Any]) -> None:
    """Apply a step to the index."""
    if "put" in step:
        items = [Item(id_, text) for id_, text in step["put"].items()]
        store.update(items, np.stack([vector(item.text) for item in items]))
    elif "remove" in step:
        store.remove(step["remove"])
    else:
        store.compact(graph_threshold=50)


def child(folder: Path, seed: int) -> None:
    """Write until killed."""
    rng = random.Random(seed)
    store = Store(folder / INDEX)
    state = read_state(folder)
    with (folder / LOG).open("a") as log:
        while True:
            step = next_step(state, rng)
            append(log, {"started": step})
            execute(store, step)
            state = after(state, step)
            append(log, {"finished": True})


def append(log: Any, line: dict[str, Any]) -> None:
    """Write a line and sync it to disk."""
    log.write(json.dumps(line) + "\n")
    log.flush()
    os.fsync(log.fileno())


def read_state(folder: Path) -> dict[str, str]:
    """The texts by id before this round."""
    state: dict[str, str] = json.loads((folder / STATE).read_text())
    return state


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The lines that the child has logged in this round."""
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines() if line]


def check_store(store: Store) -> dict[str, str]:
    """All texts by id, if the files are intact and every candidate is found by its vector and its text."""
    wrong = problems(store)
    if wrong:
        raise SystemExit(f"broken: {wrong}")
    numbers = store.database.all_numbers("candidates")
    items = store.items(numbers)
    texts = {item.id: item.text for item in items.values()}
    if texts:
        queries = np.stack([vector(text) for text in texts.values()])[:, None]
        codes = Codes(queries, np.ones((len(texts), 1), dtype=np.bool_))
        nearest = store.search(codes, 1, exact=True).ids[:, 0]
        if [items[number].id for number in nearest.tolist()] != list(texts):
            raise SystemExit("a candidate is not found by its own vector")
    with store.writer():  # deletes leftovers, and updates the lexical index
        pass
    if {number for number, _ in store.search_lexical("text", 10_000)} != set(numbers.tolist()):
        raise SystemExit("the lexical index differs from the database")
    return texts


def kill_once(folder: Path, seed: int) -> str:
    """When the child was killed: between two steps, or before or after the commit of one."""
    (folder / LOG).write_text("")
    writer = subprocess.Popen([sys.executable, __file__, "--child", str(seed), "--folder", str(folder)])
    while not (folder / LOG).read_text():
        if writer.poll() is not None:
            raise SystemExit(f"the writer ended by itself with status {writer.returncode}")
        time.sleep(0.01)
    time.sleep(random.Random(seed).random() * 0.6)
    writer.kill()
    writer.wait()
    state, lines = read_state(folder), read_log(folder)
    for position, line in enumerate(lines):
        if "started" in line and {"finished": True} in lines[position + 1 : position + 2]:
            state = after(state, line["started"])
    unfinished = lines[-1].get("started") if lines else None
    store = Store(folder / INDEX)
    texts = check_store(store)
    store.close()
    if texts != state and (unfinished is None or texts != after(state, unfinished)):
        raise SystemExit(f"round {seed}: {len(texts)} candidates are neither the last state nor the next one")
    (folder / STATE).write_text(json.dumps(texts))
    if unfinished is None:
        return "between steps"
    return "before its commit" if texts == state else "after its commit"


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
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        Store.create(folder / INDEX, WIDTH).close()
        (folder / STATE).write_text("{}")
        moments: dict[str, int] = {}
        for seed in range(options.rounds):
            moment = kill_once(folder, seed)
            moments[moment] = moments.get(moment, 0) + 1
        counts = ", ".join(f"{count} {moment}" for moment, count in sorted(moments.items()))
        print(f"{options.rounds} rounds: every committed candidate was there, nothing else ({counts})")


if __name__ == "__main__":
    main()
