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
from threading import RLock
from typing import Any
from uuid import uuid4

import numpy as np
from filelock import FileLock, Timeout

from tercet.errors import BrokenIndexError, InputError, LockedIndexError, OutputError
from tercet.files import check_free, new_folder, writing
from tercet.index.approximate import build_graph
from tercet.index.base import Found, check_vectors
from tercet.index.database import Database, row_of
from tercet.index.exact import ExactIndex
from tercet.index.items import Item
from tercet.index.lexical import LexicalIndex
from tercet.index.segment import STORAGES, Segment, Storage, digest, joined_segments
from tercet.index.snapshot import Snapshot, open_graph, without
from tercet.inputs import check_choice
from tercet.records import Codes, Counts, Floats

FORMAT = 1
DATABASE, SEGMENTS, WORDS, LOCK = "store.sqlite", "segments", "words", "writer.lock"
GRAPH = "graph.faiss"
GRAPH_FROM = 20_000
"""Below that, a scan is as quick."""
SAID_AT_ONCE = 20_000
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
        self.has_words: bool = facts("words")
        self._words = open_words(path / WORDS) if self.has_words else None
        self._lock = FileLock(path / LOCK)
        self._guard, self._writing = RLock(), RLock()
        self._seen: tuple[int, int] | None = None
        self._own = 0
        """How many changes came from here: SQLite tells only of those of others."""
        self._loaded: dict[str, Segment] = {}
        self._snapshot = Snapshot(ExactIndex(self.width, storage=self.storage), {})

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
            "graphs": len(self.snapshot().graphs),
            "words": "yes" if self.has_words else "no",
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

    def snapshot(self) -> Snapshot:
        """The vectors as they are now."""
        with self._guard:
            while self._seen != (self.database.version, self._own):
                version = self.database.version
                try:
                    self._snapshot = self._read()
                    self._seen = version, self._own
                    break  # a writer that is quicker than we are must not keep us here
                except BrokenIndexError:  # or a writer has swept away what was to be read
                    if version == self.database.version:
                        raise
            return self._snapshot

    def index(self) -> ExactIndex:
        """The vectors as they are now, without graphs."""
        return self.snapshot().index

    def items(self, numbers: Counts) -> dict[int, Item]:
        """Candidates by their numbers, those that are there."""
        return self.database.items(numbers)

    def where(self, wanted: Mapping[str, Any]) -> Counts:
        """The numbers of the candidates whose metadata has these values; a list means any of its values."""
        return self.database.where(wanted)

    def search_words(self, text: str, k: int) -> list[tuple[int, float]]:
        """The numbers and BM25 scores of the best candidates by their words."""
        if not self.has_words:
            raise InputError(f"{self.path} was made without words: build it again with them")
        if self._words is None:
            raise BrokenIndexError(f"{self.path / WORDS} is broken: run tercet index repair")
        self.snapshot()  # words that others wrote are seen with it
        return self._words.search(text, k)

    def search(
        self,
        codes: Codes,
        k: int,
        *,
        scale: float = 1.0,
        exact: bool = False,
        among: "Counts | None" = None,
    ) -> Found:
        """As ``Snapshot.search``, over the vectors as they are now."""
        return self.snapshot().search(codes, k, scale=scale, exact=exact, among=among)

    def words_problem(self) -> str:
        """What is wrong with the index of words, if something is."""
        if not self.has_words or self.database.ask("SELECT 1 FROM unsaid LIMIT 1"):
            return ""
        if self._words is None:
            return "words: cannot be read"
        return "" if len(self._words) == len(self) else f"words: {len(self._words):,} of {len(self):,}"

    def graph_problems(self) -> dict[str, str]:
        """The segments whose graphs are not as they were written, and why."""
        names = filter(self._has_graph, self.database.column("segments", "name"))
        known = self.fact("graph")
        return {name: "changed" for name in names if known["digest"] != digest(self._graph(name))}

    def drop_graph(self, segment: str) -> None:
        """Remove a graph; compacting builds it again."""
        self._graph(segment).unlink()

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Be the one who writes, for the length of the block."""
        with self._writing:  # threads wait for each other; another process is told
            yield from self._locked()

    def _locked(self) -> Iterator[None]:
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
        with self._guard, self.database.transaction():
            yield
            self._own += 1

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
            for name, segment in dict(self._loaded).items():
                if len(segment) >= graph_from and not self._has_graph(name):
                    build_graph(segment.vectors(slice(None)), self._graph(name))
                    known = {"segment": name, "digest": digest(self._graph(name))}
                    with self.change():  # so that readers look again
                        self.database.set_facts({"graph": known})

    def _is_compact(self) -> bool:
        index = self.index()
        return len(self._loaded) == len(index.segments) <= 1 and all(s.alive.all() for s in index.segments)

    def _merge(self) -> None:
        index = self.index()
        made = self._write(joined_segments(index.segments, self.storage)) if len(index) else []
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
        """Make the index of words anew; for a writer."""
        if self.has_words:
            shutil.rmtree(self.path / WORDS, ignore_errors=True)
            (self.path / WORDS).mkdir()
            self._words = LexicalIndex(self.path / WORDS)
            with self.change():
                self.database.tell("INSERT OR IGNORE INTO unsaid SELECT number FROM candidates", [()])
            self._tell_words()

    def _put(
        self, items: Sequence[Item], vectors: Floats, facts: Mapping[str, Any], *, replacing: bool
    ) -> None:
        vectors = check_vectors(vectors, count=len(items), width=self.width)
        if replacing and not all(item.id for item in items):
            raise InputError("an update needs the id of each candidate: add those that have none")
        with self.writer():
            first = self.database.next_number()
            numbers = np.arange(first, first + len(items), dtype=np.int64)
            rows = [row_of(item) for item in self._named(items, first)]
            ids = [id_ for id_, _, _ in rows]
            if len(set(ids)) < len(ids):
                raise InputError(f"an id may come once, and {_twice(ids)!r} comes again")
            known = self.database.numbers(ids)
            if known and not replacing:
                raise InputError(f"{next(iter(known))!r} is there already: update it, or remove it first")
            gone = np.array(list(known.values()), dtype=np.int64)
            made = self._segments_for(numbers, vectors, gone)
            with self.change():
                self._forget(gone)
                self.database.insert(numbers, rows)
                if self.has_words:
                    self.database.tell("INSERT INTO unsaid VALUES (?)", [(n,) for n in numbers.tolist()])
                if made:
                    self.database.tell("DELETE FROM fresh", [()])
                    self.database.tell("INSERT INTO segments VALUES (?)", [(name,) for name in made])
                else:
                    self.database.add_fresh(numbers, vectors)
                self.database.set_facts(facts)
            self._tell_words()

    def _named(self, items: Sequence[Item], first: int) -> Iterator[Item]:
        """Items with ids: those that have none get their number, or what follows it if that is taken."""
        numbers = [str(first + place) for place in range(len(items))]
        taken = {item.id for item in items} | set(self.database.numbers(numbers))
        for number, item in zip(numbers, items, strict=True):
            name = item.id or number
            while not item.id and (name in taken or (name != number and self.database.numbers([name]))):
                name += "+"
            taken.add(name)
            yield replace(item, id=name)

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
        if self.has_words:
            self.database.tell("INSERT OR IGNORE INTO unsaid VALUES (?)", [(n,) for n in numbers.tolist()])

    def _tell_words(self) -> None:
        """Let the index of words hear of what changed, perhaps for the second time, if it was killed then."""
        if self._words is None:
            return
        every = np.array(self.database.column("unsaid"), dtype=np.int64)
        for numbers in np.array_split(every, -(-len(every) // SAID_AT_ONCE) or 1):
            if len(numbers):
                there = self.database.items(numbers)
                self._words.change(numbers, np.array(list(there)), [item.text for item in there.values()])
                with self.change():
                    rows = [(number,) for number in numbers.tolist()]
                    self.database.tell("DELETE FROM unsaid WHERE number = ?", rows)

    def _read(self) -> Snapshot:
        with self.database.transaction(write=False):
            names = self.database.column("segments", "name")
            loaded = {
                name: self._loaded.get(name) or Segment.load(self.path / SEGMENTS / name) for name in names
            }
            removed = np.array(self.database.column("removed"), dtype=np.int64)
            numbers, vectors = self.database.fresh(self.width)
        self._loaded = loaded
        segments = [without(segment, removed) for segment in loaded.values()]
        if len(numbers):
            segments.append(Segment.of(numbers, vectors, self.storage))
        graphs = {place: open_graph(self._graph(name), segments[place]) for place, name in enumerate(names)}
        if self._words is not None:
            self._words.reload()
        return Snapshot(
            ExactIndex(self.width, storage=self.storage, segments=segments),
            {place: graph for place, graph in graphs.items() if graph is not None},
        )

    def _graph(self, name: str) -> Path:
        return self.path / SEGMENTS / name / GRAPH

    def _has_graph(self, name: str) -> bool:
        return (self.fact("graph") or {}).get("segment") == name and self._graph(name).is_file()

    def sweep(self) -> None:
        """Remove files that no transaction has named; for a writer."""
        named = set(self.database.column("segments", "name"))
        for folder in (self.path / SEGMENTS).iterdir():
            if folder.name not in named:
                shutil.rmtree(folder, ignore_errors=True)


def open_words(folder: Path) -> LexicalIndex | None:
    """The index of words, or none if it is broken: all else can be used without it."""
    try:
        return LexicalIndex(folder)
    except (ValueError, OSError):
        return None


def _twice(ids: Sequence[str]) -> str:
    return next(id_ for id_, times in Counter(ids).items() if times > 1)
