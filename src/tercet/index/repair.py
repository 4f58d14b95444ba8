"""Checks and repairs of a store: the texts are in the database, so lost vectors can be encoded again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.errors import BrokenIndexError
from tercet.index.items import Item
from tercet.index.reading import get_items
from tercet.index.store import Store
from tercet.inputs import listed
from tercet.records import Floats, Ints

ENCODED_AT_ONCE = 4096
SHOWN = 5
"""Ids of modified candidates, or problems, that a message shows."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a model encodes again what was lost."""

    texts: Callable[[Sequence[str]], Floats]
    """Texts to vectors ``[C, D]``."""
    update: Callable[[Sequence[Item]], None]
    """Stores candidates with their present texts and new vectors."""


def problems(store: Store) -> list[str]:
    """What is wrong with the files of a store, one line per problem. Every byte is read."""
    try:
        found = store.database.problems()
        return found if found else [*_modified_rows(store), *_file_problems(store)]
    except BrokenIndexError as error:  # a part of the database cannot be read at all
        return [str(error)]


def repair(store: Store, encoding: Encoding) -> int:
    """Drop broken files and encode their texts again; returns how many vectors were encoded.

    Candidates whose rows were modified by another program keep their present texts, which are encoded. Raises
    if a problem is left.
    """
    with store.writer(repairing=True):
        if store.database.problems():
            store.database.rebuild()
        modified = _modified_ids(store)
        encoded = _repair_vectors(store, encoding)
    for start in range(0, len(modified), ENCODED_AT_ONCE):
        encoding.update(get_items(store.database, modified[start : start + ENCODED_AT_ONCE]))
    with store.writer():
        for name in store.segments.graph_problems():
            store.segments.drop_graph(name)
        if store.lexical_problem():
            store.rebuild_lexical()
    left = problems(store)
    if left:
        raise BrokenIndexError(
            f"{store.path} cannot be repaired: {'; '.join(left[:SHOWN])}. Restore it from a backup, or build "
            'it again with "tercet index build"'
        )
    return encoded + len(modified)


def _modified_rows(store: Store) -> list[str]:
    """The rows of the database that another program changed, or that are damaged."""
    settings, ids = store.database.modified("metadata"), _modified_ids(store)
    buffered = store.database.modified("buffered")
    found = [f"settings of the index: modified: {listed(settings, most=SHOWN)}"] if settings else []
    found += [f"candidates: {len(ids):,} modified: {listed(ids, most=SHOWN)}"] if ids else []
    return found + ([f"vectors: {len(buffered):,} modified in the database"] if buffered else [])


def _file_problems(store: Store) -> list[str]:
    broken = store.segments.problems()
    found = [f"segment {name}: {problem}" for name, problem in broken.items()]
    if not broken:
        lost, orphaned = _mismatches(store)
        found += [f"{len(lost):,} vectors are missing"] if len(lost) else []
        found += [f"{len(orphaned):,} vectors belong to no candidate"] if len(orphaned) else []
    found += [f"graph of segment {name}: {what}" for name, what in store.segments.graph_problems().items()]
    lexical = store.lexical_problem()
    return [*found, lexical] if lexical else found


def _modified_ids(store: Store) -> list[str]:
    """The ids of the candidates that were modified; all of them, if the division into chunks was."""
    if store.is_chunked and store.database.modified("chunks"):
        return store.database.column("candidates", "id")
    numbers = np.array(store.database.modified("candidates"), dtype=np.int64)
    return [item.id for item in store.items(numbers).values()]


def _repair_vectors(store: Store, encoding: Encoding) -> int:
    """Drop vectors that were damaged, or that belong to no candidate, and encode those that are missing."""
    with store.database.transaction():
        damaged = [(name,) for name in store.segments.problems()]
        store.database.execute("DELETE FROM segments WHERE name = ?", damaged)
        for table in ("buffered", "chunks") if store.is_chunked else ("buffered",):
            modified = [(number,) for number in store.database.modified(table)]
            store.database.execute(f"DELETE FROM {table} WHERE number = ?", modified)
    lost, orphaned = _mismatches(store)
    with store.database.transaction():
        store.database.delete_vectors(orphaned)
    for start in range(0, len(lost), ENCODED_AT_ONCE):
        numbers = lost[start : start + ENCODED_AT_ONCE]
        store.restore(numbers, encoding.texts(store.owners.texts(numbers)))
    return len(lost)


def _mismatches(store: Store) -> tuple[Ints, Ints]:
    """Numbers of the vectors that are missing, and of those that belong to no candidate."""
    alive = [segment.ids[segment.alive] for segment in store.index().segments]
    vectors = np.concatenate([np.empty(0, dtype=np.int64), *alive])
    wanted = store.owners.all_vectors()
    return np.setdiff1d(wanted, vectors), np.setdiff1d(vectors, wanted)
