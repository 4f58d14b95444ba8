"""A store in a folder, with the interface that ``Retriever`` needs."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from tercet.errors import OutputError
from tercet.index.conditions import Where
from tercet.index.export import export_items, stored_batches
from tercet.index.items import Item
from tercet.index.protocol import Encoding
from tercet.index.ranking import Ranking, rank_candidates
from tercet.index.reading import get_items, stored_items
from tercet.index.repair import repair
from tercet.index.selection import check_column, metadata_columns
from tercet.index.store import DATABASE, Store
from tercet.index.verify import problems
from tercet.records import Codes, Floats, Ints

T = TypeVar("T")


class FolderStore(Store):
    """The folder of an index."""

    @property
    def name(self) -> str:
        """The path of the folder."""
        return str(self.path)

    def __iter__(self) -> Iterator[Item]:
        """All candidates, in the order in which they were stored."""
        for items in stored_items(self.database):
            yield from items.values()

    def contains(self, id_: str) -> bool:
        """Whether there is a candidate with an id."""
        return bool(self.database.numbers([id_]))

    def get(self, ids: Sequence[str]) -> list[Item]:
        """The candidates with these ids, which must exist."""
        return get_items(self.database, ids)

    def read(self, call: "Callable[[FolderView], T]") -> T:
        """What ``call`` returns. Other processes may change the folder meanwhile."""
        return call(FolderView(self))

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""
        return metadata_columns(self.database)

    def check_column(self, column: str) -> None:
        """Raise if no candidate has a column in its metadata."""
        check_column(self.database, column)

    def count_where(self, where: Where) -> int:
        """The number of candidates that meet all conditions."""
        return len(self.where(where))

    def save(self, path: Path) -> "FolderStore":
        """A copy of the store in a new folder."""
        return FolderStore(self.copy(path).path)

    def export(self, path: Path, *, vectors: Path | None = None, overwrite: bool = False) -> int:
        """Write id, text and metadata of each candidate to a JSONL file; returns how many were written."""
        return export_items(self, path, vectors=vectors, overwrite=overwrite)

    def batches(self, *, with_vectors: bool) -> "Iterator[tuple[list[Item], Floats | None]]":
        """All candidates in batches; while vectors are read, nobody else can write."""
        if not with_vectors:
            yield from ((list(items.values()), None) for items in stored_items(self.database))
            return
        with stored_batches(self) as batches:
            yield from batches

    def problems(self) -> list[str]:
        """What is wrong with the files, one line per problem. Reads every byte."""
        return problems(self)

    def repair(self, encoding: Encoding, *, accept_loss: bool = False) -> int:
        """Drop broken files and encode their candidates again; returns how many vectors were encoded."""
        return repair(self, encoding, accept_loss=accept_loss)

    def marker(self) -> object:
        """Identifies the database file in the folder; None if there is none."""
        try:
            found = (self.path / DATABASE).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


class FolderView:
    """The candidates of a folder. Each call sees the state after the last change of another process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def bound(self) -> int:
        """The number of candidates."""
        return len(self._store)

    def select(self, where: Where) -> Ints:
        """The numbers of the candidates that meet all conditions."""
        return self._store.where(where)

    def by_vectors(
        self, codes: Codes, k: int, *, scale: float, exact: bool, selection: "Ints | None" = None
    ) -> list[Ranking]:
        """The ``k`` best candidates of each context."""
        store = self._store
        subset = None if selection is None else store.owners.vectors_of(selection)
        return rank_candidates(
            lambda depth: store.search(codes, depth, scale=scale, exact=exact, subset=subset),
            store.owners.owners,
            k,
            total=len(store.index()),
        )

    def by_words(self, text: str, k: int, selection: "Ints | None" = None) -> dict[int, float]:
        """The BM25 scores of at most ``k`` candidates, best first."""
        if selection is None:
            return dict(self._store.search_lexical(text, k))
        allowed = set(selection.tolist())
        found = self._store.search_lexical(text, max(len(self._store), 1))
        return dict(islice(((number, score) for number, score in found if number in allowed), k))

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""
        return self._store.items(numbers)


def check_new(path: Path) -> None:
    """Raise if the folder is an index already."""
    if (path / DATABASE).is_file():
        raise OutputError(
            f'{path} is an index: open it with tercet.Retriever.open("{path}"), or choose another path'
        )
