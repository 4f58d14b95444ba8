"""Whether a store is whole, and if not, what is saved: texts are there, so vectors can be made again."""

from collections.abc import Callable, Sequence

import numpy as np

from tercet.index.segment import damage
from tercet.index.store import SEGMENTS, Store
from tercet.records import Counts, Floats

ENCODED_AT_ONCE = 4096


def problems(store: Store) -> list[str]:
    """What is wrong with a store's files, a line each; every byte is read."""
    found = store.database.problems()
    broken = broken_segments(store)
    found += [f"segment {name}: {what}" for name, what in broken.items()]
    if not broken:
        lost, strange = _differences(store)
        found += [f"{len(lost):,} candidates have no vector"] if len(lost) else []
        found += [f"{len(strange):,} vectors belong to no candidate"] if len(strange) else []
    found += [f"graph of segment {name}: {what}" for name, what in store.graph_problems().items()]
    said = store.words_problem()
    return [*found, said] if said else found


def repair(store: Store, encode: Callable[[Sequence[str]], Floats]) -> int:
    """Leave out what is broken and make its vectors again; gives how many were made.

    Args:
        encode: gives the vectors ``[C, D]`` of texts.
    """
    with store.writer():
        broken = broken_segments(store)
        with store.change():
            store.database.tell("DELETE FROM segments WHERE name = ?", [(name,) for name in broken])
        lost, strange = _differences(store)
        with store.change():
            store.database.tell("INSERT OR IGNORE INTO removed VALUES (?)", [(n,) for n in strange.tolist()])
        for start in range(0, len(lost), ENCODED_AT_ONCE):
            numbers = lost[start : start + ENCODED_AT_ONCE]
            items = store.items(numbers)
            vectors = encode([items[number].text for number in numbers.tolist()])
            store.put_back(numbers, vectors)
        for name in store.graph_problems():
            store.drop_graph(name)
        if store.words_problem():
            store.retell_words()
        store.sweep()
    return len(lost)


def broken_segments(store: Store) -> dict[str, str]:
    """The segments whose files are not as they were written, and why."""
    names = store.database.column("segments", "name")
    found = {name: damage(store.path / SEGMENTS / name) for name in names}
    return {name: what for name, what in found.items() if what}


def _differences(store: Store) -> tuple[Counts, Counts]:
    """Numbers of candidates without a vector, and of vectors without a candidate."""
    index = store.index()
    alive = [segment.ids[segment.alive] for segment in index.segments]
    vectors = np.concatenate([np.empty(0, dtype=np.int64), *alive])
    candidates = np.array(store.database.column("candidates"), dtype=np.int64)
    return np.setdiff1d(candidates, vectors), np.setdiff1d(vectors, candidates)
