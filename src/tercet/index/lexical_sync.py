"""The lexical index of a store, which follows the candidates in the database.

tantivy commits on its own, after the transaction of the database. That transaction therefore records which
candidates are pending, and the next writer updates them again if a process died in between.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tercet.errors import BrokenIndexError, TercetError
from tercet.files.removal import remove_own
from tercet.index.database import Database
from tercet.index.lexical import LexicalIndex
from tercet.index.lexical_files import LEXICAL_FILE, lexical_digests, modified_files
from tercet.index.linked_folder import LinkedFolder, is_read_only
from tercet.inputs import listed
from tercet.records import Ints

UPDATED_AT_ONCE = 20_000
SHOWN = 3
"""Modified files that a message shows."""
DIGESTS = "lexical_files"
"""The setting of the store with the digests of the files."""
PANIC = "PanicException"
"""The class of panics in Rust, which cannot be imported and is not an ``Exception``."""


class LexicalSync:
    """The lexical index in a folder. It may be broken: everything else works without it."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._database = database
        self._links = LinkedFolder(folder) if is_read_only(folder) else None
        self._index = self._opened()
        self._is_sound: bool | None = None
        """Whether tantivy may write to the files; None before they were compared with their digests."""

    @staticmethod
    def create(folder: Path) -> dict[str, str]:
        """Write an empty index to a new folder; returns the digests of its files."""
        folder.mkdir()
        LexicalIndex(folder)
        return lexical_digests(folder, {})

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
        if self._index is None:
            self._index = self._opened()
            return
        try:
            with damage_named(self._folder):
                self._index.reload()
        except BrokenIndexError:
            self._index = None

    def update(self) -> None:
        """Bring the index up to date with the pending candidates; an update may be repeated.

        An index that is damaged stays as it is, because tantivy panics or copies the damage. Candidates stay
        pending until it is repaired.
        """
        if self._index is None:
            return
        pending = self._database.all_numbers("pending")
        if self._is_sound is None:
            self._is_sound = not self._modified(is_changing=len(pending) > 0)
        for start in range(0, len(pending), UPDATED_AT_ONCE):
            numbers = pending[start : start + UPDATED_AT_ONCE]
            self._is_sound = self._is_sound and self._change(numbers)
            if not self._is_sound:
                return
            with self._database.transaction():
                self._database.delete_pending(numbers)
                self._record()

    def rebuild(self) -> None:
        """Build the index again from the database. Only the writer may call this."""
        with self._database.transaction():
            self._database.add_pending(self._database.all_numbers("candidates"))
        remove_own(self._folder, LEXICAL_FILE)
        self._folder.mkdir(exist_ok=True)
        self._index, self._is_sound = LexicalIndex(self._folder), True
        with self._database.transaction():
            self._record()
        self.update()

    def problem(self) -> str:
        """What is wrong with the index; empty if nothing is, or if an update is pending."""
        is_pending = bool(self._database.column("pending"))
        modified = self._modified(is_changing=is_pending)
        if modified:
            return f"lexical index: modified or missing: {listed(modified, most=SHOWN)}"
        self.reload()
        if self._index is None:
            return "lexical index: cannot be read"
        if is_pending:
            return ""
        indexed, count = len(self._index), self._database.count()
        return "" if indexed == count else f"lexical index: has {indexed:,} of {count:,} candidates"

    def _opened(self) -> LexicalIndex | None:
        try:
            with damage_named(self._folder):
                return LexicalIndex(self._links.path if self._links else self._folder)
        except BrokenIndexError:
            return None

    def _change(self, numbers: Ints) -> bool:
        """Replace the texts of candidates; returns whether tantivy could."""
        texts = self._database.texts(numbers)  # those that were removed are missing
        try:
            with damage_named(self._folder):
                if self._index is not None:
                    self._index.change(numbers, np.array(list(texts), dtype=np.int64), texts.values())
        except BrokenIndexError:
            return False
        return True

    def _modified(self, *, is_changing: bool) -> list[str]:
        """The files that differ from their digests."""
        digests = self._digests()
        if not digests:
            return ["the list of digests"]
        return modified_files(self._folder, digests, is_changing=is_changing)

    def _record(self) -> None:
        """Store the digests of the files, in a transaction."""
        self._database.set_metadata({DIGESTS: lexical_digests(self._folder, self._digests())})

    def _digests(self) -> dict[str, str]:
        """The digests that are stored; none if they are damaged."""
        try:
            digests = self._database.metadata(DIGESTS)
        except BrokenIndexError:
            return {}
        return digests if isinstance(digests, dict) else {}


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
