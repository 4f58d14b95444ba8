"""Candidates on disk: texts and ids in a database, vectors in segments, terms in a lexical index.

A segment is written and synced before the transaction that makes it part of the store. Before that, it is a
leftover that the next writer deletes; after that, it never changes. So the folder always holds the state
after the last transaction, whenever a process is killed.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np

from tercet.errors import BrokenIndexError, InputError, LockedIndexError
from tercet.files.atomic import check_free, new_folder
from tercet.files.lock import exclusive
from tercet.files.removal import refuse_links, remove_own
from tercet.index.base import SearchResult, check_vectors
from tercet.index.conditions import SHOWN_VALUES, Where, conditions_of
from tercet.index.database import Database
from tercet.index.dtypes import STORAGES
from tercet.index.exact import ExactIndex
from tercet.index.items import Item, assign_ids, row_of
from tercet.index.lexical_files import LEXICAL_FILE
from tercet.index.lexical_sync import DIGESTS, LexicalSync
from tercet.index.owners import CHUNKS, CandidateParts, ChunkVectors, OneVector, VectorOwners
from tercet.index.reading import get_items, merged, with_stored_metadata
from tercet.index.scan import Scan, scan
from tercet.index.segment import Segment, merge_segments
from tercet.index.segment_files import SEGMENT_FILE, SegmentFiles
from tercet.index.selection import select
from tercet.index.snapshot import Snapshot, read_snapshot
from tercet.inputs import check_choice, listed
from tercet.records import Codes, Floats, Ints
from tercet.settings.index import Storage

DATABASE, SEGMENTS, LEXICAL, LOCK = "store.sqlite", "segments", "lexical", "writer.lock"
STORE_FILE = re.compile(rf"{re.escape(DATABASE)}(-wal|-shm)?|{re.escape(LOCK)}")
"""The names of the files beside the folders of a store."""
GRAPH_THRESHOLD = 20_000
"""Number of vectors from which a graph is faster than a scan."""
BUFFER_SIZE = 8192
"""Vectors are buffered in the database until there are this many; then they become a segment."""


class Store:
    """The folder of an index. One process may write to it while others read; threads may share a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        refuse_links(path)
        self.database = Database(path / DATABASE)
        self.width: int = self._setting("width", int)
        self.storage: Storage = self._setting("storage", str)
        self.has_lexical: bool = self._setting("lexical", bool)
        self.segments = SegmentFiles(path / SEGMENTS, self.database)
        self.is_chunked: bool = self.metadata("chunked") or False
        self.database.check_tables(CHUNKS if self.is_chunked else "")
        self.owners: VectorOwners = (ChunkVectors if self.is_chunked else OneVector)(self.database)
        self._lexical = LexicalSync(path / LEXICAL, self.database) if self.has_lexical else None
        self._reading, self._writing = RLock(), RLock()
        self._version: tuple[int, int] | None = None
        self._scan: Scan = scan
        self._snapshot = Snapshot(ExactIndex(self.width, storage=self.storage), {})

    @classmethod
    def create(
        cls,
        path: Path,
        width: int,
        *,
        storage: Storage = "float32",
        lexical: bool = True,
        chunked: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """An empty store in a new folder.

        Args:
            lexical: whether to build a lexical index too.
            chunked: whether a candidate has a vector for each of its chunks, instead of one.
            metadata: values to store with the index, such as the model.
        """
        check_choice("storage", storage, tuple(STORAGES))
        check_free(path)
        with new_folder(path) as partial:
            (partial / SEGMENTS).mkdir()
            own = {"width": width, "storage": storage, "lexical": lexical, "chunked": chunked}
            files = {DIGESTS: LexicalSync.create(partial / LEXICAL)} if lexical else {}
            database = Database(partial / DATABASE, create=True, more_tables=CHUNKS if chunked else "")
            with closing(database), database.transaction():
                database.set_metadata({**own, **files, **(metadata or {})})
        return cls(path)

    def copy(self, path: Path) -> "Store":
        """A copy of the store in a new folder."""
        with self.writer(), new_folder(path) as partial:
            self.database.copy(partial / DATABASE)
            others = shutil.ignore_patterns(LOCK, f"{DATABASE}*")
            shutil.copytree(self.path, partial, dirs_exist_ok=True, ignore=others)
        return Store(path)

    def close(self) -> None:
        """Close the files."""
        self.database.close()

    def delete(self) -> None:
        """Delete the index; files in its folder that are not its own stay."""
        self.segments.sweep(names=set())
        self.close()
        for folder, own in ((SEGMENTS, SEGMENT_FILE), (LEXICAL, LEXICAL_FILE), ("", STORE_FILE)):
            remove_own(self.path / folder, own)

    def __len__(self) -> int:
        return self.database.count()

    def metadata(self, name: str) -> Any:
        """A value of the store's metadata; None if it is not set."""
        return self.database.metadata(name)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""
        with self.writer(), self.database.transaction():
            self.database.set_metadata(metadata)

    def summary(self) -> dict[str, Any]:
        """The size, settings and model of the index."""
        snapshot = self.snapshot()
        return {
            "candidates": len(self),
            "finished": "yes" if self.is_finished else "no: run the same build command again",
            "chunks": len(self.owners.all_vectors()) if self.is_chunked else "no",
            "removed": len(self.database.column("removed")),
            "segments": len(self.segments.loaded),
            "graphs": len(snapshot.graphs),
            "lexical": "yes" if self.has_lexical else "no",
            "width": self.width,
            "storage": self.storage,
            "model": self.metadata("model") or "unknown",
            "kind": self.metadata("kind") or "unknown",
            "fingerprint": self.metadata("fingerprint") or "unknown",
            "bytes": sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file()),
        }

    @property
    def is_finished(self) -> bool:
        """Whether no build of the index was interrupted."""
        return self.metadata("source") is None or bool(self.metadata("finished"))

    def scan_with(self, scan: Scan) -> None:
        """Search segments with ``scan`` from now on, for example on a GPU."""
        with self._reading:
            self._scan, self._version = scan, None

    def snapshot(self) -> Snapshot:
        """The vectors in their current state."""
        with self._reading:
            while self._version != self.database.version:
                version = self.database.version
                try:
                    self._snapshot = self._read()
                    self._version = version
                    break  # even if a writer was faster: a fast one must not keep the reader in this loop
                except BrokenIndexError:  # a writer may have deleted a segment before it was loaded
                    if version == self.database.version:
                        raise
            return self._snapshot

    def index(self) -> ExactIndex:
        """The vectors in their current state, without graphs."""
        return self.snapshot().index

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""
        return self.database.items(numbers)

    def where(self, where: Where) -> Ints:
        """The numbers of the candidates whose metadata meets all conditions; errors as in ``select``."""
        return select(self.database, conditions_of(where))

    def search(
        self,
        codes: Codes,
        k: int,
        *,
        scale: float = 1.0,
        exact: bool = False,
        subset: "Ints | None" = None,
    ) -> SearchResult:
        """``Snapshot.search`` over the current vectors; numbers are those of vectors."""
        exact = exact or self._scan is not scan  # a GPU scans faster than a CPU walks a graph
        return self.snapshot().search(codes, k, scale=scale, exact=exact, subset=subset)

    def search_lexical(self, text: str, k: int) -> list[tuple[int, float]]:
        """The numbers and BM25 scores of at most ``k`` candidates, best first."""
        if self._lexical is None:
            raise InputError(f"{self.path} has no lexical index: rebuild it with lexical=True")
        self.snapshot()  # also makes the lexical changes of other processes visible
        return self._lexical.search(text, k)

    def lexical_terms(self, text: str) -> list[str]:
        """The terms of a text as the lexical index has them; none without such an index."""
        return [] if self._lexical is None else self._lexical.terms(text)

    @contextmanager
    def writer(self, *, repairing: bool = False) -> Iterator[None]:
        """Be the only writer for the length of the block. Threads wait; another process gets an error.

        Args:
            repairing: whether to accept a malformed database, and to leave the lexical index as it is.
        """
        refuse_links(self.path)
        with self._writing, exclusive(self.path / LOCK, self._refuse):
            if not repairing:
                self.database.check_integrity()
                self.database.check_lists()
            self.segments.sweep()
            if not repairing:
                self._update_lexical()
            yield

    def add(
        self,
        items: Sequence[Item],
        vectors: Floats,
        *,
        parts: CandidateParts | None = None,
        store_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add candidates with new ids, all or none of them.

        Args:
            vectors: ``[C, D]``: one for each candidate, or for each chunk.
            parts: the chunks of each candidate, if the store is chunked.
            store_metadata: set in the same transaction, such as the progress of a build.
        """
        self._put(items, vectors, parts, store_metadata or {}, replacing=False)

    def update(self, items: Sequence[Item], vectors: Floats, *, parts: CandidateParts | None = None) -> None:
        """Replace candidates that have these ids, and add the others.

        Args:
            items: their metadata changes the values that are stored, and None removes one.
            vectors: ``[C, D]``: one for each candidate, or for each chunk.
            parts: the chunks of each candidate, if the store is chunked.
        """
        if not all(item.id for item in items):
            raise InputError("an update needs the id of every candidate: add those that have none")
        self._put(items, vectors, parts, {}, replacing=True)

    def update_metadata(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """Change values in the metadata of candidates, by id; None removes one. Texts and vectors stay."""
        with self.writer(), self.database.transaction():
            items = get_items(self.database, list(metadata))
            changed = (replace(item, metadata=merged(item.metadata, metadata[item.id])) for item in items)
            rows = [row_of(item) for item in changed]
            self.database.replace_metadata({id_: values for id_, _, values in rows})

    def remove(self, ids: Sequence[str]) -> None:
        """Remove candidates, which must exist."""
        with self.writer():
            with self.database.transaction():
                known = self.database.numbers(ids)
                unknown = [id_ for id_ in ids if id_ not in known]
                if unknown:
                    missing = listed(unknown, most=SHOWN_VALUES)
                    raise InputError(f"{self.path} has no candidate {missing}: nothing was removed")
                self._delete(np.array(list(known.values()), dtype=np.int64))
            self._update_lexical()

    def compact(self, *, graph_threshold: int = GRAPH_THRESHOLD) -> None:
        """Merge all vectors into one segment, without those that were removed.

        Args:
            graph_threshold: with at least this many vectors, also build an HNSW graph, which makes search
                faster and approximate.
        """
        with self.writer():
            if not self._is_compact():
                self._merge()
            for name, segment in list(self.segments.loaded.items()):
                if len(segment) >= graph_threshold and not self.segments.has_graph(name):
                    self.segments.build_graph(name, segment)

    def restore(self, numbers: Ints, vectors: Floats) -> None:
        """Store vectors ``[C, D]`` that were lost, by their numbers. Only the writer may call this."""
        vectors = check_vectors(vectors, count=len(numbers), width=self.width)
        segment = self.segments.write(Segment.of(numbers, vectors, self.storage))
        with self.database.transaction():
            self.database.delete_rows("removed", "number", numbers.tolist())
            self._add_segment(segment)

    def rebuild_lexical(self) -> None:
        """Build the lexical index again from the texts. Only the writer may call this."""
        if self._lexical is not None:
            self._lexical.rebuild()

    def lexical_problem(self) -> str:
        """What is wrong with the lexical index; empty if nothing is."""
        return "" if self._lexical is None else self._lexical.problem()

    def _setting(self, name: str, kind: type) -> Any:
        """A value of the metadata without which the files cannot be read."""
        value = self.metadata(name)
        if not isinstance(value, kind):
            raise BrokenIndexError(
                f"{self.path} has lost its setting {name!r}: restore it from a backup, or build it again "
                'with "tercet index build"'
            )
        return value

    def _refuse(self) -> None:
        raise LockedIndexError(f"another process is writing to {self.path}: wait until it has finished")

    def _put(
        self,
        items: Sequence[Item],
        vectors: Floats,
        parts: CandidateParts | None,
        metadata: Mapping[str, Any],
        *,
        replacing: bool,
    ) -> None:
        with self.writer():
            if replacing:
                items = with_stored_metadata(items, self.database)
            first = self.database.next_number()
            numbers = np.arange(first, first + len(items), dtype=np.int64)
            vector_numbers = self.owners.numbers(numbers, parts)
            vectors = check_vectors(vectors, count=len(vector_numbers), width=self.width)
            rows = [row_of(item) for item in assign_ids(items, first, self.database.numbers)]
            replaced = self._existing([id_ for id_, _, _ in rows], allowed=replacing)
            segment = self._segment_if_many(vector_numbers, vectors, self.owners.vectors_of(replaced))
            with self.database.transaction():
                self._delete(replaced)
                self.database.insert(numbers, rows)
                self.owners.insert(vector_numbers, numbers, parts)
                if self.has_lexical:
                    self.database.add_pending(numbers)
                if segment is None:
                    self.database.add_buffered(vector_numbers, vectors)
                else:
                    self.database.clear("buffered")
                    self._add_segment(segment)
                self.database.set_metadata(metadata)
            self._update_lexical()

    def _existing(self, ids: Sequence[str], *, allowed: bool) -> Ints:
        """The numbers of the candidates that have these ids already."""
        if len(set(ids)) < len(ids):
            raise InputError(f"ids must be distinct, but {Counter(ids).most_common(1)[0][0]!r} is repeated")
        known = self.database.numbers(ids)
        if known and not allowed:
            verb = "exists" if len(known) == 1 else "exist"
            raise InputError(
                f"{listed(list(known), most=SHOWN_VALUES)} {verb} already: update (--update), remove, or "
                "choose other ids"
            )
        return np.array(list(known.values()), dtype=np.int64)

    def _segment_if_many(self, numbers: Ints, vectors: Floats, replaced: Ints) -> str | None:
        """The name of a new segment of the buffered and the new vectors; None while they fit the buffer."""
        buffered, waiting = self.database.buffered(self.width)
        if len(buffered) + len(numbers) < BUFFER_SIZE:
            return None
        kept = ~np.isin(buffered, replaced)
        numbers = np.concatenate([buffered[kept], numbers])
        vectors = np.concatenate([waiting[kept], vectors])
        return self.segments.write(Segment.of(numbers, vectors, self.storage))

    def _add_segment(self, name: str) -> None:
        self.database.add_segment(name, self.segments.manifest_digest(name))

    def _delete(self, numbers: Ints) -> None:
        self.database.delete_vectors(self.owners.vectors_of(numbers))
        self.owners.delete(numbers)
        self.database.delete(numbers)
        if self.has_lexical:
            self.database.add_pending(numbers)

    def _update_lexical(self) -> None:
        if self._lexical is not None:
            self._lexical.update()

    def _is_compact(self) -> bool:
        segments = self.index().segments
        return len(self.segments.loaded) == len(segments) <= 1 and all(s.alive.all() for s in segments)

    def _merge(self) -> None:
        index = self.index()
        name = self.segments.write(merge_segments(index.segments, self.storage)) if len(index) else None
        with self.database.transaction():
            for table in ("segments", "buffered", "removed"):
                self.database.clear(table)
            if name is not None:
                self._add_segment(name)
        self.index()
        self.segments.sweep()

    def _read(self) -> Snapshot:
        snapshot = read_snapshot(
            self.segments, self.database, width=self.width, storage=self.storage, scan=self._scan
        )
        if self._lexical is not None:
            self._lexical.reload()
        return snapshot
