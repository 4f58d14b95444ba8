"""Checks of a store: every byte is read and compared with its digest, and every row is counted."""

import numpy as np

from tercet.errors import BrokenIndexError
from tercet.index.store import Store
from tercet.inputs import listed
from tercet.records import Ints

SHOWN = 5
"""Ids of modified candidates that a message shows."""
ATTEMPTS = 5
"""How often an index is read that another process writes to."""
SETTINGS = "settings of the index"
"""What messages call the table ``metadata``."""


def problems(store: Store) -> list[str]:
    """What is wrong with the files of a store, one line per problem."""
    for _ in range(ATTEMPTS):
        version = store.database.version
        found = _problems(store)
        if not found or version == store.database.version:
            break  # otherwise a writer changed the files while they were read
    return found


def _problems(store: Store) -> list[str]:
    try:
        found = store.database.problems()
        return found if found else [*_modified_rows(store), *_wrong_totals(store), *_file_problems(store)]
    except (BrokenIndexError, OSError) as error:  # a part cannot be read at all
        return [str(error)]


def losses(store: Store) -> list[str]:
    """What a repair can only give up: candidates that are gone, and metadata that cannot be read."""
    total = store.database.total("candidates")
    is_lost = total.has_lost or (total.is_exchanged and not store.database.modified("candidates"))
    unreadable = ids_of(store, unreadable_candidates(store))
    found = [f"candidates: {total}"] if is_lost else []
    return found + (
        [f"metadata that is not a JSON object: {listed(unreadable, most=SHOWN)}"] if unreadable else []
    )


def unreadable_candidates(store: Store) -> Ints:
    """The numbers of the candidates whose metadata was modified and is not a JSON object any more."""
    modified = np.array(store.database.modified("candidates"), dtype=np.int64)
    return np.array(store.database.unreadable_metadata(modified), dtype=np.int64)


def modified_ids(store: Store) -> list[str]:
    """The ids of the candidates that were modified; all of them, if the division into chunks was."""
    if store.is_chunked and (
        store.database.modified("chunks") or not store.database.total("chunks").is_right
    ):
        return ids_of(store, store.database.all_numbers("candidates"))
    return ids_of(store, np.array(store.database.modified("candidates"), dtype=np.int64))


def ids_of(store: Store, numbers: Ints) -> list[str]:
    """The ids of candidates by number."""
    rows = store.database.select_in(
        "SELECT CAST(id AS TEXT) FROM candidates WHERE number IN", numbers.tolist()
    )
    return [id_ for (id_,) in rows]


def mismatches(store: Store) -> tuple[Ints, Ints]:
    """Numbers of the vectors that are missing, and of those that belong to no candidate."""
    alive = [segment.ids[segment.alive] for segment in store.index().segments]
    vectors = np.concatenate([np.empty(0, dtype=np.int64), *alive])
    wanted = store.owners.all_vectors()
    return np.setdiff1d(wanted, vectors), np.setdiff1d(vectors, wanted)


def _modified_rows(store: Store) -> list[str]:
    """The rows of the database that another program changed, or that are damaged."""
    settings, ids = store.database.modified("metadata"), modified_ids(store)
    buffered, segments = store.database.modified("buffered"), store.database.modified("segments")
    found = [f"{SETTINGS}: modified: {listed(settings, most=SHOWN)}"] if settings else []
    found += [f"candidates: {len(ids):,} modified: {listed(ids, most=SHOWN)}"] if ids else []
    found += [f"segments: {len(segments):,} modified in the list of segments"] if segments else []
    return found + ([f"vectors: {len(buffered):,} modified in the database"] if buffered else [])


def _wrong_totals(store: Store) -> list[str]:
    """The tables that do not have the rows that were written."""
    totals = {table: store.database.total(table) for table in store.database.tables()}
    names = {"metadata": SETTINGS}
    wrong = {names.get(table, table): total for table, total in totals.items() if not total.is_right}
    return [f"{name}: {total}" for name, total in wrong.items()]


def _file_problems(store: Store) -> list[str]:
    broken = store.segments.problems()
    found = [f"segment {name}: {problem}" for name, problem in broken.items()]
    if not broken:
        lost, orphaned = mismatches(store)
        found += [f"{len(lost):,} vectors are missing"] if len(lost) else []
        found += [f"{len(orphaned):,} vectors belong to no candidate"] if len(orphaned) else []
    found += [f"graph of segment {name}: {what}" for name, what in store.segments.graph_problems().items()]
    lexical = store.lexical_problem()
    return [*found, lexical] if lexical else found
