"""The coroutines of ``Retriever``: each runs the method without the ``a`` in another thread."""

from asyncio import to_thread
from collections.abc import Callable, Iterable

from tercet.index.conditions import Where
from tercet.index.item_forms import ItemLike
from tercet.records import Context, Hits, Progress
from tercet.settings.index import Mode


class AsyncRetrieval:
    """Searches and writes that do not block the event loop.

    If a coroutine is cancelled, its thread still finishes: a write is completed, never half done.
    """

    search: Callable[..., Hits]
    search_many: Callable[..., list[Hits]]
    add: Callable[..., None]
    update: Callable[..., None]
    remove: Callable[..., None]

    async def asearch(
        self,
        context: Context,
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Where | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> Hits:
        """As ``search``, in another thread."""
        return await to_thread(self.search, context, k, mode=mode, where=where, rerank=rerank, exact=exact)

    async def asearch_many(
        self,
        contexts: Iterable[Context],
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Where | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> list[Hits]:
        """As ``search_many``, in another thread."""
        return await to_thread(
            self.search_many, contexts, k, mode=mode, where=where, rerank=rerank, exact=exact
        )

    async def aadd(self, candidates: Iterable[ItemLike], *, on_progress: Progress | None = None) -> None:
        """As ``add``, in another thread, which also calls ``on_progress``."""
        await to_thread(self.add, candidates, on_progress=on_progress)

    async def aupdate(self, candidates: Iterable[ItemLike], *, on_progress: Progress | None = None) -> None:
        """As ``update``, in another thread, which also calls ``on_progress``."""
        await to_thread(self.update, candidates, on_progress=on_progress)

    async def aremove(self, ids: Iterable[str]) -> None:
        """As ``remove``, in another thread."""
        await to_thread(self.remove, ids)
