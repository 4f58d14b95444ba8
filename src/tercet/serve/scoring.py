"""Scores of contexts and candidates, computed by the engine."""

from asyncio import ensure_future, gather, to_thread
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from tercet.records import Codes, Context, Floats, Ints, Scores
from tercet.serve.engine import Engine
from tercet.serve.models import ServedDual, TokenArray
from tercet.serve.work import Result
from tercet.settings.models import Side

INLINE = 2_000_000
"""Products of codes and candidates up to which matching is faster than handing it to a thread."""


class Scored(NamedTuple):
    """Scores with the counts of truncated tokens, and the number of tokens that were read."""

    scores: Scores
    tokens: int


class Encoded(NamedTuple):
    """Codes of texts, the truncated tokens of each, and the number of tokens that were read."""

    codes: Codes
    truncated: Ints
    tokens: int


async def encode(engine: Engine, name: str, texts: "Sequence[Context | TokenArray]", side: Side) -> Encoded:
    """The codes of texts by a bi- or poly-encoder."""
    model: ServedDual = engine.model(name)
    return _encoded(await engine.run(name, model.lane(side), texts))


async def score_all(
    engine: Engine, name: str, contexts: Sequence[Context], candidates: Sequence[str]
) -> Scored:
    """Every context against every candidate."""
    model = engine.model(name)
    if not isinstance(model, ServedDual):
        results = await engine.run(name, "pair", list(product(contexts, candidates)))
        return _scored(results, (len(contexts), len(candidates)))
    left, right = await _both_sides(engine, name, contexts, candidates)
    values = await _match(model, left.codes, right.codes)
    if model.scorer.is_symmetric:
        back = await _both_sides(engine, name, candidates, contexts)
        mean: Floats = (values + (await _match(model, back[0].codes, back[1].codes)).T) / np.float32(2)
        values = mean
    scores = Scores(values, left.truncated[:, None], right.truncated[None, :])
    return Scored(scores, left.tokens + right.tokens)


async def score_pairs(
    engine: Engine, name: str, contexts: Sequence[Context], candidates: Sequence[str]
) -> Scored:
    """Each context against the candidate at its position: ``[B]``."""
    model = engine.model(name)
    if not isinstance(model, ServedDual):
        pairs = list(zip(contexts, candidates, strict=True))
        return _scored(await engine.run(name, "pair", pairs), (len(pairs),))
    left, right = await _both_sides(engine, name, contexts, candidates)
    values = await _match_pairs(model, left.codes, right.codes)
    if model.scorer.is_symmetric:
        back = await _both_sides(engine, name, candidates, contexts)
        mean: Floats = (values + await _match_pairs(model, back[0].codes, back[1].codes)) / np.float32(2)
        values = mean
    return Scored(Scores(values, left.truncated, right.truncated), left.tokens + right.tokens)


async def _both_sides(
    engine: Engine, name: str, contexts: Sequence[Context], candidates: Sequence[Context]
) -> tuple[Encoded, Encoded]:
    """The codes of both sides, in one batch if the model is siamese."""
    model: ServedDual = engine.model(name)
    if model.lane("context") == "candidate":
        results = await engine.run(name, "candidate", [*contexts, *candidates])
        return _encoded(results[: len(contexts)]), _encoded(results[len(contexts) :])
    tasks = [
        ensure_future(engine.run(name, lane, texts))
        for lane, texts in ((model.lane("context"), contexts), (model.lane("candidate"), candidates))
    ]
    try:
        left, right = await gather(*tasks)
    finally:
        for task in tasks:  # if one fails, nobody needs the other
            task.cancel()
    return _encoded(left), _encoded(right)


async def _match(model: ServedDual, codes: Codes, candidates: Codes) -> Floats:
    """``[B, C]``."""
    vectors = candidates.vectors[:, 0]
    if codes.vectors.size * len(vectors) <= INLINE:
        return model.match(codes, vectors)
    return await to_thread(model.match, codes, vectors)


async def _match_pairs(model: ServedDual, codes: Codes, candidates: Codes) -> Floats:
    """``[B]``."""
    vectors = candidates.vectors[:, :1]  # [B, 1, D]
    scores = await to_thread(model.match, codes, vectors)
    return scores[:, 0]


def _encoded(results: Sequence[Result]) -> Encoded:
    counts = [len(result.value) for result in results]
    width = results[0].value.shape[1]
    vectors = np.zeros((len(results), max(counts), width), dtype=np.float32)
    for row, result in zip(vectors, results, strict=True):
        row[: len(result.value)] = result.value
    mask = np.arange(max(counts)) < np.array(counts)[:, None]
    truncated = np.array([result.truncated[0] for result in results], dtype=np.int64)
    return Encoded(Codes(vectors, mask), truncated, sum(result.tokens for result in results))


def _scored(results: Sequence[Result], shape: tuple[int, ...]) -> Scored:
    values = np.array([result.value for result in results], dtype=np.float32).reshape(shape)
    truncated = np.array([result.truncated for result in results], dtype=np.int64)  # [N, 2]
    scores = Scores(values, truncated[:, 0].reshape(shape), truncated[:, 1].reshape(shape))
    return Scored(scores, sum(result.tokens for result in results))
