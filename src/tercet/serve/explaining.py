"""Explanations of scores, one at a time; shortened texts are scored by the engine, in turn with others."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from tercet.errors import OverloadedError
from tercet.records import Context, Explanation, Floats
from tercet.serve.engine import Engine
from tercet.serve.scoring import Scored, score_pairs

MAX_WAITING = 8
"""Explanations that run or wait at the same time."""


class Explainer:
    """Explains with the models of an engine, beside it, in a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "tercet-explain")
        self._open = 0

    async def explain(
        self, name: str, context: Context, candidate: str, *, leave_one_out: bool
    ) -> Explanation:
        """As ``Scorer.explain``. If the caller is cancelled, what was not scored yet is dropped."""
        if self._open >= MAX_WAITING:
            raise OverloadedError(f"{MAX_WAITING} explanations wait already: try again later", retry_after=1)
        scoring: list[Future[Scored]] = []
        scores = partial(self._pair_scores, name, scoring, asyncio.get_running_loop())
        work = partial(
            self._engine.model(name).scorer.explain, leave_one_out=leave_one_out, pair_scores=scores
        )
        self._open += 1
        try:
            found: Explanation = await asyncio.get_running_loop().run_in_executor(
                self._thread, work, context, candidate
            )
        finally:
            self._open -= 1
            for each in scoring:
                each.cancel()
        return found

    def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _pair_scores(
        self,
        name: str,
        scoring: list[Future[Scored]],
        loop: asyncio.AbstractEventLoop,
        contexts: Sequence[Context],
        candidates: Sequence[str],
    ) -> Floats:
        """In the thread of the explanation: wait for the engine."""
        pairs = score_pairs(self._engine, name, contexts, candidates)
        scoring.append(asyncio.run_coroutine_threadsafe(pairs, loop))
        return scoring[-1].result().scores.values
