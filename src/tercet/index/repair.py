"""Checks and repairs of a store: the texts are in the database, so lost vectors can be encoded again."""

from collections.abc import Callable, Sequence

import numpy as np

from tercet.index.store import Store
from tercet.records import Floats, Ints

ENCODED_AT_ONCE = 4096


def problems(store: Store) -> list[str]:
    """What is wrong with the files of a store, one line per problem. Every byte is read."""
    found = store.database.problems()
    broken = store.segments.problems()
    found += [f"segment {name}: {problem}" for name, problem in broken.items()]
    if not broken:
        lost, orphaned = _mismatches(store)
        found += [f"{len(lost):,} vectors are missing"] if len(lost) else []
        found += [f"{len(orphaned):,} vectors belong to no candidate"] if len(orphaned) else []
    found += [f"graph of segment {name}: {what}" for name, what in store.segments.graph_problems().items()]
    lexical = store.lexical_problem()
    return [*found, lexical] if lexical else found


def repair(store: Store, encode: Callable[[Sequence[str]], Floats]) -> int:
    """Drop broken files and encode their texts again; returns how many were encoded.

    Args:
        encode: texts to vectors ``[C, D]``.
    """
    with store.writer():
        broken = store.segments.problems()
        with store.database.transaction():
            store.database.execute("DELETE FROM segments WHERE name = ?", [(name,) for name in broken])
        lost, orphaned = _mismatches(store)
        with store.database.transaction():
            rows = [(number,) for number in orphaned.tolist()]
            store.database.execute("INSERT OR IGNORE INTO removed VALUES (?)", rows)
        for start in range(0, len(lost), ENCODED_AT_ONCE):
            numbers = lost[start : start + ENCODED_AT_ONCE]
            store.restore(numbers, encode(store.owners.texts(numbers)))
        for name in store.segments.graph_problems():
            store.segments.drop_graph(name)
        if store.lexical_problem():
            store.rebuild_lexical()
        store.segments.sweep()
    return len(lost)


def _mismatches(store: Store) -> tuple[Ints, Ints]:
    """Numbers of the vectors that are missing, and of those that belong to no candidate."""
    alive = [segment.ids[segment.alive] for segment in store.index().segments]
    vectors = np.concatenate([np.empty(0, dtype=np.int64), *alive])
    wanted = store.owners.all_vectors()
    return np.setdiff1d(wanted, vectors), np.setdiff1d(vectors, wanted)
