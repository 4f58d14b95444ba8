"""Repairs of a store: the texts are in the database, so lost vectors can be encoded again."""

from tercet.errors import BrokenIndexError
from tercet.index.lexical_sync import DIGESTS
from tercet.index.protocol import Encoding
from tercet.index.reading import get_items
from tercet.index.row_digests import COLUMNS
from tercet.index.segment_files import GRAPH
from tercet.index.store import Store
from tercet.index.verify import ids_of, losses, mismatches, modified_ids, problems, unreadable_candidates

ENCODED_AT_ONCE = 4096
SHOWN = 5
"""Problems that a message shows."""
DERIVED_SETTINGS = (GRAPH, DIGESTS)
"""Settings that are made again with the files that they describe."""


def repair(store: Store, encoding: Encoding, *, accept_loss: bool = False) -> int:
    """Drop broken files and encode their texts again; returns how many vectors were encoded.

    Candidates whose rows were modified by another program keep their present texts, which are encoded. Raises
    if a problem is left.

    Args:
        accept_loss: whether to continue without candidates that are gone, and to clear metadata that cannot
            be read. Otherwise these are problems that are left.
    """
    with store.writer(repairing=True):
        _repair_database(store)
        if accept_loss:
            _accept_losses(store)
        lost = losses(store)
        unreadable = set(ids_of(store, unreadable_candidates(store)))
        modified = [id_ for id_ in modified_ids(store) if id_ not in unreadable]
        encoded = _repair_vectors(store, encoding)
        if store.lexical_problem() or not store.database.total("pending").is_right:
            store.rebuild_lexical()
    for start in range(0, len(modified), ENCODED_AT_ONCE):
        encoding.update(get_items(store.database, modified[start : start + ENCODED_AT_ONCE]))
    with store.writer():
        for name in store.segments.graph_problems():
            store.segments.drop_graph(name)
        _record_totals(store, lost)
    _check(store, lost)
    return encoded + len(modified)


def _repair_database(store: Store) -> None:
    """Mend what SQLite can, the types of values, and settings that are made again."""
    database = store.database
    if database.problems():
        database.rebuild()
        left = database.problems()
        if left:
            raise _unrepaired(store, left)
    with database.transaction():
        for table in set(database.tables()) & set(COLUMNS):
            database.restore_types(table)
        modified = database.modified("metadata")
        database.delete_rows("metadata", "name", [name for name in modified if name in DERIVED_SETTINGS])
    if database.is_modified("metadata"):  # nothing can be encoded or written without the right settings
        raise _unrepaired(store, problems(store))


def _accept_losses(store: Store) -> None:
    with store.database.transaction():
        store.database.record_total("candidates")
        store.database.clear_metadata(unreadable_candidates(store))


def _repair_vectors(store: Store, encoding: Encoding) -> int:
    """Drop vectors that were damaged, or that belong to no candidate, and encode those that are missing."""
    with store.database.transaction():
        modified = store.database.modified("segments")
        store.database.delete_rows("segments", "name", [*modified, *store.segments.problems()])
        store.database.record_total("segments")
        for table in ("buffered", "chunks") if store.is_chunked else ("buffered",):
            store.database.delete_rows(table, "number", store.database.modified(table))
        store.owners.delete_orphans()
    lost, orphaned = mismatches(store)
    with store.database.transaction():
        store.database.delete_vectors(orphaned)
    for start in range(0, len(lost), ENCODED_AT_ONCE):
        numbers = lost[start : start + ENCODED_AT_ONCE]
        store.restore(numbers, encoding.texts(store.owners.texts(numbers)))
    return len(lost)


def _record_totals(store: Store, lost: list[str]) -> None:
    """Record the rows of the tables that were mended: all but the settings, and candidates that are lost."""
    kept = ("metadata", "candidates", "chunks") if lost else ("metadata",)
    with store.database.transaction():
        for table in store.database.tables():
            if table not in kept:
                store.database.record_total(table)


def _check(store: Store, lost: list[str]) -> None:
    """Raise if a problem is left."""
    left = problems(store)
    if left and lost:
        raise BrokenIndexError(
            f"{store.path} has losses that cannot be repaired: {'; '.join(lost)}. Restore a backup, or "
            'accept them with "tercet index repair --accept-loss" (accept_loss=True) and add what is missing'
        )
    if left:
        raise _unrepaired(store, left)


def _unrepaired(store: Store, left: list[str]) -> BrokenIndexError:
    return BrokenIndexError(
        f"{store.path} cannot be repaired: {'; '.join(left[:SHOWN])}. Restore it from a backup, or build "
        'it again with "tercet index build"'
    )
