"""Explanations of scores; texts without words are scored by the engine, so that others have their turns."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tercet.records import Context, Explanation, Floats
from tercet.serve.engine import Engine
from tercet.serve.scoring import Scored, score_pairs

if TYPE_CHECKING:
    import concurrent.futures


async def explain(
    engine: Engine, name: str, context: Context, candidate: str, *, leave_one_out: bool
) -> Explanation:
    """As ``Scorer.explain``. If the caller is cancelled, what was not scored yet is dropped."""
    loop = asyncio.get_running_loop()
    scorer: Any = engine.model(name).scorer
    scoring: list[concurrent.futures.Future[Scored]] = []

    def pair_scores(contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """In the thread of the explanation: wait for the engine."""
        pairs = score_pairs(engine, name, contexts, candidates)
        scoring.append(asyncio.run_coroutine_threadsafe(pairs, loop))
        return scoring[-1].result().scores.values

    try:
        found: Explanation = await asyncio.to_thread(
            scorer.explain, context, candidate, leave_one_out=leave_one_out, pair_scores=pair_scores
        )
    finally:
        for each in scoring:
            each.cancel()
    return found
