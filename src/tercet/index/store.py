"""Candidates on disk: texts and ids in a database, vectors in segments, and nothing lost between them.

A segment is written and synced before the transaction that names it. Until then it is nobody's and is swept
away by the next writer; after that it never changes. So whatever happens, the folder holds the state after
the last transaction.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from filelock import FileLock, Timeout

from tercet.errors import BrokenIndexError, InputError, LockedIndexError, OutputError
from tercet.extras import require
from tercet.files import check_free, new_folder, writing
from tercet.index.approximate import ApproximateIndex, build_graph, read_structure
from tercet.index.base import CERTAINTIES, Found, check_vectors
from tercet.index.database import Database
from tercet.index.exact import ExactIndex
from tercet.index.items import Item
from tercet.index.lexical import LexicalIndex
from tercet.index.scoring import Best, joined
from tercet.index.segment import STORAGES, Segment, Storage
from tercet.inputs import check_choice
from tercet.records import Codes, Counts, Floats

FORMAT = 1
DATABASE, SEGMENTS, WORDS, LOCK = "store.sqlite", "segments", "words", "writer.lock"
GRAPH = "graph.faiss"
GRAPH_FROM = 20_000
"""Below that, a scan is as quick."""
FEW = 8192
"""Vectors wait in the database until there are so many: then they become a segment."""


class Store:
    """The folder of an index; one process may write to it, any number may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = Database(path / DATABASE)
        facts = self.database.fact
        if facts("format") != FORMAT:
            raise InputError(f"{path} has the format {facts('format')}, and this tercet reads {FORMAT}")
        self.width: int = facts("width")
        self.storage: Storage = facts("storage")
        self._words = LexicalIndex(path / WORDS) if facts("words") else None
        self._lock = FileLock(path / LOCK)
        self._seen = -1
        self._loaded: dict[str, Segment] = {}
        self._index = ExactIndex(self.width, storage=self.storage)
        self._graphs: dict[int, ApproximateIndex] = {}
        """Over those segments of the index that have one, by the segment's identity."""

    @classmethod
    def create(
        cls,
        path: Path,
        width: int,
        *,
        storage: Storage = "float32",
        words: bool = True,
        facts: Mapping[str, Any] | None = None,
    ) -> "Store":
        """A new folder.

        Args:
            words: whether candidates are found by their words too.
            facts: what else should be written down, such as the model.
        """
        check_choice("storage", storage, STORAGES)
        check_free(path)
        with new_folder(path) as partial:
            (partial / SEGMENTS).mkdir()
            if words:
                (partial / WORDS).mkdir()
                LexicalIndex(partial / WORDS)
            database = Database(partial / DATABASE, create=True)
            known = {"format": FORMAT, "width": width, "storage": storage, "words": words}
            database.set_facts(known | dict(facts or {}))
            database.close()
        return cls(path)

    def copy(self, path: Path) -> "Store":
        """The same candidates in a new folder."""
        with self.writer(), new_folder(path) as partial:
            self.database.ask("PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.copytree(self.path, partial, dirs_exist_ok=True, ignore=shutil.ignore_patterns(LOCK))
        return Store(path)

    def note(self, facts: Mapping[str, Any]) -> None:
        """Write facts down."""
        with self.writer(), self.change():
            self.database.set_facts(facts)

    def summary(self) -> dict[str, Any]:
        """What there is, in a few words and numbers."""
        index = self.index()
        files = sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        return {
            "candidates": len(self),
            "removed": len(self.database.column("removed")),
            "segments": len(self._loaded),
            "graphs": len(self._graphs),
            "words": "yes" if self._words is not None else "no",
            "width": self.width,
            "storage": index.storage,
            "model": self.fact("model") or "not remembered",
            "kind": self.fact("kind") or "unknown",
            "fingerprint": self.fact("fingerprint") or "unknown",
            "bytes": files,
        }

    def close(self) -> None:
        """Give the files back."""
        self.database.close()

    def __len__(self) -> int:
        return self.database.count()

    def fact(self, name: str) -> Any:
        """What was written down under a name."""
        return self.database.fact(name)

    def index(self) -> ExactIndex:
        """The vectors as they are now; what is written later does not change it."""
        version = self.database.version
        while version != self._seen:
            try:
                with self.database.transaction(write=False):
                    self._index = self._read()
            except BrokenIndexError:
                if version == self.database.version:
                    raise
            else:
                self._seen = version
            version = self.database.version  # a writer may have swept away what was to be read
        return self._index

    def search(
        self,
        codes: Codes,
        k: int,
        *,
        scale: float = 1.0,
        exact: bool = False,
        among: "Counts | None" = None,
    ) -> Found:
        """The numbers of the ``k`` best candidates of each context.

        Args:
            exact: look at every vector, even where there is a graph.
            among: look only at these numbers, and at each of them.
        """
        index = self.index()
        if among is not None:
            return index.among(among).search(codes, k, scale=scale)
        rest = [segment for segment in index.segments if exact or id(segment) not in self._graphs]
        found = [ExactIndex(self.width, storage=self.storage, segments=rest).search(codes, k, scale=scale)]
        if not exact:
            found += [graph.search(codes, k, scale=scale) for graph in self._graphs.values()]
        return merged(found, k)

    def items(self, numbers: Counts) -> dict[int, Item]:
        """Candidates by their numbers, those that are there."""
        return self.database.items(numbers)

    def where(self, wanted: Mapping[str, Any]) -> Counts:
        """The numbers of the candidates whose metadata has these values; a list means any of its values."""
        return self.database.where(wanted)

    def search_words(self, text: str, k: int) -> list[tuple[int, float]]:
        """The numbers and BM25 scores of the best candidates by their words."""
        if self._words is None:
            raise InputError(f"{self.path} was made without words: build it again with them")
        return self._words.search(text, k)

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Be the one who writes, for the length of the block."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise LockedIndexError(
                f"{self.path} is being written to by another process: wait until it is done"
            ) from None
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written to: {error.strerror}") from None
        try:
            self.sweep()
            self._tell_words()
            yield
        finally:
            self._lock.release()

    @contextmanager
    def change(self) -> Iterator[None]:
        """One transaction; for a writer."""
        with self.database.transaction():
            yield
        self._seen = -1  # SQLite tells only others that something changed

    def add(self, items: Sequence[Item], vectors: Floats, *, facts: Mapping[str, Any] | None = None) -> None:
        """Put in candidates with new ids, all or none of them.

        Args:
            facts: written down with them, such as how far a build has come.
        """
        self._put(items, vectors, facts or {}, replacing=False)

    def update(self, items: Sequence[Item], vectors: Floats) -> None:
        """Put candidates in the place of those that have their ids, and beside the others."""
        self._put(items, vectors, {}, replacing=True)

    def remove(self, ids: Sequence[str]) -> None:
        """Take out candidates that are there."""
        with self.writer():
            with self.change():
                known = self.database.numbers(ids)
                missing = [id_ for id_ in ids if id_ not in known]
                if missing:
                    raise InputError(f"there is no candidate {missing[0]!r} in {self.path}")
                self._forget(np.array(list(known.values()), dtype=np.int64))
            self._tell_words()

    def compact(self, *, graph_from: int = GRAPH_FROM) -> None:
        """Write all vectors into one segment, without those that were removed.

        Args:
            graph_from: with so many or more, build a graph too, which makes search quick and a little less
                than exact.
        """
        with self.writer():
            if not self._is_compact():
                self._merge()
            for name, segment in self._loaded.items():
                file = self.path / SEGMENTS / name / GRAPH
                if len(segment) >= graph_from and not file.is_file():
                    build_graph(segment.vectors(slice(None)), file)
                    with self.change():
                        self.database.set_facts({"graph": name})  # so that readers look again

    def _is_compact(self) -> bool:
        index = self.index()
        return len(self._loaded) == len(index.segments) <= 1 and all(s.alive.all() for s in index.segments)

    def _merge(self) -> None:
        index = self.index()
        made = self._write(_joined(index.segments, self.storage)) if len(index) else []
        with self.change():
            for table in ("segments", "fresh", "removed"):
                self.database.tell(f"DELETE FROM {table}", [()])
            self.database.tell("INSERT INTO segments VALUES (?)", [(name,) for name in made])
        self.index()
        self.sweep()

    def put_back(self, numbers: Counts, vectors: Floats) -> None:
        """Give vectors ``[C, D]`` to candidates that have lost theirs; for a writer."""
        vectors = check_vectors(vectors, count=len(numbers), width=self.width)
        made = self._write(Segment.of(numbers, vectors, self.storage))
        with self.change():
            self.database.tell("DELETE FROM removed WHERE number = ?", [(n,) for n in numbers.tolist()])
            self.database.tell("INSERT INTO segments VALUES (?)", [(name,) for name in made])

    def retell_words(self) -> None:
        """Let the index of words hear of everything again; for a writer."""
        if self._words is not None:
            with self.change():
                self.database.tell("INSERT OR IGNORE INTO unsaid SELECT number FROM candidates", [()])
            self._tell_words()

    def _put(
        self, items: Sequence[Item], vectors: Floats, facts: Mapping[str, Any], *, replacing: bool
    ) -> None:
        vectors = check_vectors(vectors, count=len(items), width=self.width)
        ids = [item.id for item in items]
        if len(set(ids)) < len(ids):
            raise InputError(f"an id may come once, and {_twice(ids)!r} comes again")
        with self.writer():
            known = self.database.numbers(ids)
            if known and not replacing:
                raise InputError(f"{next(iter(known))!r} is there already: update it, or remove it first")
            first = self.database.next_number()
            numbers = np.arange(first, first + len(items), dtype=np.int64)
            gone = np.array(list(known.values()), dtype=np.int64)
            made = self._segments_for(numbers, vectors, gone)
            with self.change():
                self._forget(gone)
                self.database.insert(numbers, items)
                if self._words is not None:
                    self.database.tell("INSERT INTO unsaid VALUES (?)", [(n,) for n in numbers.tolist()])
                if made:
                    self.database.tell("DELETE FROM fresh", [()])
                    self.database.tell("INSERT INTO segments VALUES (?)", [(name,) for name in made])
                else:
                    self.database.add_fresh(numbers, vectors)
                self.database.set_facts(facts)
            self._tell_words()

    def _segments_for(self, numbers: Counts, vectors: Floats, gone: Counts) -> list[str]:
        """New files for many vectors and those that waited; no files for few."""
        waiting, waited = self.database.fresh(self.width)
        if len(waiting) + len(numbers) < FEW:
            return []
        stays = ~np.isin(waiting, gone)
        numbers = np.concatenate([waiting[stays], numbers])
        vectors = np.concatenate([waited[stays], vectors])
        return self._write(Segment.of(numbers, vectors, self.storage))

    def _write(self, segment: Segment) -> list[str]:
        name = f"{int(segment.ids[0]):012}-{uuid4().hex[:8]}"
        with writing(self.path / SEGMENTS / name):
            segment.save(self.path / SEGMENTS / name)
        return [name]

    def _forget(self, numbers: Counts) -> None:
        self.database.delete(numbers)
        if self._words is not None:
            self.database.tell("INSERT OR IGNORE INTO unsaid VALUES (?)", [(n,) for n in numbers.tolist()])

    def _tell_words(self) -> None:
        """Let the index of words hear of what changed, perhaps for the second time, if it was killed then."""
        numbers = np.array(self.database.column("unsaid"), dtype=np.int64)
        if self._words is None or not len(numbers):
            return
        there = self.database.items(numbers)
        self._words.change(numbers, np.array(list(there)), [item.text for item in there.values()])
        with self.change():
            self.database.tell("DELETE FROM unsaid WHERE number = ?", [(n,) for n in numbers.tolist()])

    def _read(self) -> ExactIndex:
        names = self.database.column("segments", "name")
        self._loaded = {
            name: self._loaded.get(name) or Segment.load(self.path / SEGMENTS / name) for name in names
        }
        removed = np.array(self.database.column("removed"), dtype=np.int64)
        segments = [without(segment, removed) for segment in self._loaded.values()]
        self._graphs = {}
        for name, segment in zip(self._loaded, segments, strict=True):
            file = self.path / SEGMENTS / name / GRAPH
            if file.is_file():
                self._graphs[id(segment)] = ApproximateIndex.over(segment, open_graph(file))
        numbers, vectors = self.database.fresh(self.width)
        if len(numbers):
            segments.append(Segment.of(numbers, vectors, self.storage))
        return ExactIndex(self.width, storage=self.storage, segments=segments)

    def sweep(self) -> None:
        """Remove files that no transaction has named; for a writer."""
        named = set(self.database.column("segments", "name"))
        for folder in (self.path / SEGMENTS).iterdir():
            if folder.name not in named:
                shutil.rmtree(folder, ignore_errors=True)


def merged(found: Sequence[Found], k: int) -> Found:
    """The best of what was found in several places; it is as certain as the least certain of them."""
    if len(found) == 1:
        return found[0]
    best = [Best(k) for _ in found[0].certainty]
    for part in found:
        for each, ids, scores in zip(best, part.ids, part.scores, strict=True):
            each.offer(ids[ids >= 0], scores[ids >= 0])
    ids, scores = joined(best, k)
    certainty = [max(said, key=CERTAINTIES.index) for said in zip(*(p.certainty for p in found), strict=True)]
    return Found(ids, scores, tuple(certainty), np.sum([part.scored for part in found], axis=0))


def open_graph(file: Path) -> Any:
    """A graph that was written beside a segment."""
    return read_structure(require("faiss", extra="index", purpose="search in a graph"), file)


def without(segment: Segment, numbers: Counts) -> Segment:
    """The same vectors, some of them marked as removed."""
    rows = segment.rows(numbers)
    alive = segment.alive.copy()
    alive[rows[rows >= 0]] = False
    return replace(segment, alive=alive)


def _joined(segments: Sequence[Segment], storage: Storage) -> Segment:
    living = [np.flatnonzero(segment.alive) for segment in segments]
    parts = list(zip(segments, living, strict=True))
    ids = np.concatenate([segment.ids[rows] for segment, rows in parts])
    return Segment.of(ids, np.concatenate([segment.vectors(rows) for segment, rows in parts]), storage)


def _twice(ids: Sequence[str]) -> str:
    return next(id_ for id_, times in Counter(ids).items() if times > 1)
