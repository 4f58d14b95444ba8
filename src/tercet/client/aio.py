"""The client of programs with an event loop."""

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tercet.client import calls
from tercet.client.attempts import UNREACHABLE, Outcome, partly_done, result_of
from tercet.client.calls import Call, Request
from tercet.client.connection import Connection, arguments
from tercet.client.results import IndexInfo, ModelInfo, Reranked, Written
from tercet.errors import ServerError
from tercet.index.item_forms import ItemLike
from tercet.records import Context, Explanation, Floats, Hits, Ranked
from tercet.settings.index import Mode
from tercet.settings.models import Side

Result = TypeVar("Result")


class AsyncClient(Connection[httpx2.AsyncClient]):
    """As ``Client``, with coroutines. Use it in one event loop."""

    _http_class = httpx2.AsyncClient
    concurrency = 4
    """Requests of a split list that are sent at a time; writes are sent one after another."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def embed(
        self,
        texts: Iterable[str],
        *,
        model: str | None = None,
        side: Side = "candidate",
        dimensions: int | None = None,
    ) -> Floats:
        """``[N, D]``: the vector of each text, as ``encode`` of a bi- or poly-encoder. A long list is split.

        Args:
            side: which tower and prompt to use.
            dimensions: keep only the first dimensions, and normalize the vectors.
        """
        size, model = self._batch, model or self.model
        return await self._run(calls.embed(texts, size, model=model, side=side, dimensions=dimensions))

    async def rerank(
        self,
        query: Context,
        documents: Iterable[str],
        *,
        top_n: int | None = None,
        model: str | None = None,
    ) -> list[Reranked]:
        """The documents, most relevant first; the default model is the server's reranker."""
        return await self._run(calls.rerank(query, documents, top_n=top_n, model=model or self.model))

    async def score(self, context: Context, candidates: Iterable[str], *, model: str | None = None) -> Floats:
        """``[C]``: the score of each candidate."""
        return await self._run(calls.score(context, candidates, model=model or self.model))

    async def score_many(
        self, contexts: Iterable[Context], candidates: Iterable[str], *, model: str | None = None
    ) -> Floats:
        """``[B, C]``: the scores of every context against every candidate."""
        return await self._run(calls.score_many(contexts, candidates, model=model or self.model))

    async def score_pairs(
        self, contexts: Iterable[Context], candidates: Iterable[str], *, model: str | None = None
    ) -> Floats:
        """``[B]``: the score of each context and the candidate at its position."""
        return await self._run(calls.score_pairs(contexts, candidates, model=model or self.model))

    async def rank(
        self, context: Context, candidates: Iterable[str], k: int = 10, *, model: str | None = None
    ) -> list[Ranked]:
        """The ``k`` best candidates, best first; ties keep their order."""
        return await self._run(calls.rank(context, candidates, k, model=model or self.model))

    async def explain(
        self, context: Context, candidate: str, *, leave_one_out: bool = False, model: str | None = None
    ) -> Explanation:
        """How the words of both texts contribute to the score; ``attention`` stays on the server."""
        chosen = model or self.model
        return await self._run(calls.explain(context, candidate, leave_one_out=leave_one_out, model=chosen))

    async def search(
        self,
        index: str,
        context: Context,
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Mapping[str, Any] | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> Hits:
        """The ``k`` best candidates of an index, as ``Retriever.search``.

        Args:
            where: metadata that a candidate must have, such as ``{"topic": "cards"}``.
            rerank: how many candidates the server's reranker reads. Default: none.
            exact: compare with every vector, even if there is a graph.
        """
        return await self._run(
            calls.search(index, context, k, mode=mode, where=where, rerank=rerank, exact=exact)
        )

    async def add(self, index: str, candidates: Iterable[ItemLike]) -> Written:
        """Add candidates: texts, or mappings with ``text``, ``id`` and metadata. A long list is split.

        Give ids if you can: then a request whose connection is lost is sent again, because it cannot add a
        candidate twice.
        """
        return await self._run(calls.add(index, candidates, self._batch))

    async def update(self, index: str, candidates: Iterable[ItemLike]) -> Written:
        """Replace candidates by their ids, and add those with new ids. A long list is split."""
        return await self._run(calls.update(index, candidates, self._batch))

    async def remove(self, index: str, ids: Iterable[str]) -> Written:
        """Remove candidates, which must exist. A long list is split."""
        return await self._run(calls.remove(index, ids, self._batch))

    async def models(self) -> list[ModelInfo]:
        """The models of the server."""
        return await self._run(calls.models())

    async def indexes(self) -> list[IndexInfo]:
        """The indexes of the server."""
        return await self._run(calls.indexes())

    async def ready(self) -> bool:
        """Whether the server can be reached and its models are loaded. There are no retries."""
        try:
            return await self._run(calls.ready())
        except ServerError as error:
            if error.type != UNREACHABLE:
                raise
            return False

    async def _run(self, call: Call[Result]) -> Result:
        answers: dict[int, httpx2.Response] = {}
        waiting = iter(enumerate(call.requests))

        async def work() -> None:
            for position, request in waiting:
                answers[position] = await self._answer(request)

        count = 1 if call.in_order else max(1, self.concurrency)
        workers = [asyncio.ensure_future(work()) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        except ServerError as error:
            raise partly_done(error, call, len(answers)) from None
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        responses = [answers[position] for position in range(len(call.requests))]
        return result_of(call, responses, self.base_url)

    async def _answer(self, request: Request) -> httpx2.Response:
        attempts = self._attempts(request)
        while isinstance(step := attempts.after(await self._send(request)), float):
            await asyncio.sleep(step)
        return step

    async def _send(self, request: Request) -> Outcome:
        try:
            response: httpx2.Response = await self._http.request(**arguments(request))
        except httpx2.RequestError as error:
            return error
        return response
