"""The lexical index of a store, which follows the candidates in the database.

tantivy commits on its own, after the transaction of the database. That transaction therefore records which
candidates are pending, and the next writer updates them again if a process died in between.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tercet.errors import BrokenIndexError, TercetError
from tercet.files.removal import remove_own
from tercet.index.database import Database
from tercet.index.lexical import LexicalIndex
from tercet.index.linked_folder import LinkedFolder, is_read_only

UPDATED_AT_ONCE = 20_000
PANIC = "PanicException"
"""The class of panics in Rust, which cannot be imported and is not an ``Exception``."""
LEXICAL_FILE = re.compile(r"[0-9a-f]{32}(\.\d+)?\.\w+|\.?(meta|managed)\.json|\.tantivy-\w+\.lock|\.tmp\w+")
"""The names of the files of tantivy."""


class LexicalSync:
    """The lexical index in a folder. It may be broken: everything else works without it."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._database = database
        self._links = LinkedFolder(folder) if is_read_only(folder) else None
        self._index = _open(self._links.path if self._links else folder)

    @staticmethod
    def create(folder: Path) -> None:
        """Write an empty index to a new folder."""
        folder.mkdir()
        LexicalIndex(folder)

    def search(self, text: str, k: int) -> list[tuple[int, float]]:
        """The numbers and BM25 scores of at most ``k`` candidates, best first."""
        if self._index is None:
            raise BrokenIndexError(f'{self._folder} is broken: run "tercet index repair"')
        with damage_named(self._folder):
            return self._index.search(text, k)

    def terms(self, text: str) -> list[str]:
        """The terms of a text as they are indexed; none if the index is broken."""
        return [] if self._index is None else self._index.terms(text)

    def reload(self) -> None:
        """Make the commits of other processes visible."""
        if self._links is not None:
            self._links.refresh()
        if self._index is not None:
            with damage_named(self._folder):
                self._index.reload()

    def update(self) -> None:
        """Bring the index up to date with the pending candidates; an update may be repeated."""
        if self._index is None:
            return
        pending = self._database.all_numbers("pending")
        for start in range(0, len(pending), UPDATED_AT_ONCE):
            numbers = pending[start : start + UPDATED_AT_ONCE]
            items = self._database.items(numbers)  # those that were removed are missing
            self._index.change(
                numbers, np.array(list(items), dtype=np.int64), [item.text for item in items.values()]
            )
            with self._database.transaction():
                self._database.delete_pending(numbers)

    def rebuild(self) -> None:
        """Build the index again from the database. Only the writer may call this."""
        remove_own(self._folder, LEXICAL_FILE)
        self._folder.mkdir(exist_ok=True)
        self._index = LexicalIndex(self._folder)
        with self._database.transaction():
            self._database.add_pending(self._database.all_numbers("candidates"))
        self.update()

    def problem(self) -> str:
        """What is wrong with the index; empty if nothing is, or if an update is pending."""
        if self._database.column("pending"):
            return ""
        if self._index is None:
            return "lexical index: cannot be read"
        indexed, count = len(self._index), self._database.count()
        return "" if indexed == count else f"lexical index: has {indexed:,} of {count:,} candidates"


@contextmanager
def damage_named(folder: Path) -> Iterator[None]:
    """Turn what tantivy raises for a damaged file, panics of Rust included, into a ``BrokenIndexError``."""
    try:
        yield
    except TercetError:
        raise
    except BaseException as error:
        if not isinstance(error, (ValueError, TypeError, OSError)) and type(error).__name__ != PANIC:
            raise
        raise BrokenIndexError(f'{folder} is broken ({error}): run "tercet index repair"') from None


def _open(folder: Path) -> LexicalIndex | None:
    try:
        with damage_named(folder):
            return LexicalIndex(folder)
    except BrokenIndexError:
        return None
