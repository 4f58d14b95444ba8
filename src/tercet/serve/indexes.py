"""Indexes that the server searches and changes; texts are encoded by the engine."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tercet.errors import InputError, LockedIndexError, TercetError
from tercet.index.conditions import Where
from tercet.records import Certainty, Context, Hits
from tercet.retrieve import Retriever, reranked
from tercet.serve.engine import Engine
from tercet.serve.scoring import encode, score_all
from tercet.settings.index import Mode

T = TypeVar("T")

LOCK_PAUSE, LOCK_ATTEMPTS = 0.05, 200
"""Seconds before the next attempt while another process writes to the index, and how many there are."""


class MissingIndexError(TercetError):
    """An index was moved, deleted or replaced after it was opened."""


class Found(NamedTuple):
    """Search results, and the truncated tokens of the context."""

    hits: Hits
    context_truncated: int


class ServedIndex:
    """An index, the model that encodes its candidates, and a reranker."""

    def __init__(self, name: str, retriever: Retriever, *, model: str, reranker: str | None) -> None:
        self.name, self.retriever = name, retriever
        self.model, self.reranker = model, reranker
        self._writing = asyncio.Lock()
        self._marker = retriever.store.marker()

    async def size(self) -> int:
        """The number of candidates."""
        return await self._in_thread(lambda: len(self.retriever))

    def is_missing(self) -> bool:
        """Whether the index was moved, deleted or replaced since it was opened."""
        return self.retriever.store.marker() != self._marker

    async def search(
        self,
        engine: Engine,
        context: Context,
        k: int,
        *,
        mode: Mode = "vectors",
        where: Where | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> Found:
        """The ``k`` best candidates; ``rerank`` is how many the reranker reads, by default none."""
        if rerank and self.reranker is None:
            raise InputError("there is no reranker: start the server with --reranker cross")
        depth = rerank or 0
        encoded = None if mode == "lexical" else await encode(engine, self.model, [context], "context")
        codes = None if encoded is None else encoded.codes
        (hits,) = await self._in_thread(
            lambda: self.retriever.search_codes(
                [context], codes, max(k, depth), mode=mode, where=where, exact=exact
            )
        )
        if depth and hits and self.reranker is not None:
            parts = await asyncio.to_thread(self.retriever.parts_to_rerank, hits[:depth])
            scored = await score_all(engine, self.reranker, [context], [part.passage for part in parts])
            hits = reranked(hits, parts, scored.scores.values[0], depth)
        elif depth:
            hits = Hits((), Certainty.RERANKED)
        return Found(Hits(hits[:k], hits.certainty), 0 if encoded is None else int(encoded.truncated[0]))

    async def write(self, engine: Engine, candidates: Iterable[Any], *, update: bool) -> int:
        """Add candidates, or replace those whose ids are known; returns how many. All or none are stored."""
        passages = await asyncio.to_thread(self.retriever.passages, candidates, with_ids=update)
        if not passages.items:
            raise InputError("there are no candidates: give at least one")
        encoded = await encode(engine, self.model, passages.texts, "candidate")
        vectors = np.ascontiguousarray(encoded.codes.vectors[:, 0])
        async with self._writing:
            await self._when_free(lambda: self.retriever.write(passages, vectors, update=update))
        return len(passages.items)

    async def remove(self, ids: Sequence[str]) -> int:
        """Remove candidates, which must exist; returns how many."""
        if not ids:
            raise InputError("there are no ids: give at least one")
        async with self._writing:
            await self._when_free(lambda: self.retriever.remove(ids))
        return len(ids)

    async def _when_free(self, write: Callable[[], None]) -> None:
        """Call ``write``, and wait while another process writes.

        A write that began is completed, even if the client has gone: it is never half done.
        """
        for attempt in range(LOCK_ATTEMPTS):
            try:
                return await asyncio.shield(self._in_thread(write))
            except LockedIndexError:
                if attempt == LOCK_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(LOCK_PAUSE)
            except InputError as error:  # clients know the name of the index, not its folder
                raise InputError(str(error).replace(self.retriever.name, self.name)) from None
        return None

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """What ``call`` returns, in another thread; raises if the index is missing, or vanishes meanwhile.

        Without the check, SQLite would go on reading a file that was deleted.
        """
        missing = MissingIndexError(
            f"the index {self.name} was moved, deleted or replaced: put it back, or restart the server"
        )

        def checked() -> T:
            if self.is_missing():
                raise missing
            try:
                return call()
            except (TercetError, OSError):
                if self.is_missing():
                    raise missing from None
                raise

        return await asyncio.to_thread(checked)
