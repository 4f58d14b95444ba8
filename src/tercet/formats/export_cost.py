"""What a lower precision costs and gains, on texts: cosines, the same top 10, and speed."""

from collections.abc import Sequence
from statistics import median
from time import process_time
from typing import NamedTuple, TypeAlias

import numpy as np

from tercet.records import Floats
from tercet.scorers.compiled.bi import CompiledBi
from tercet.scorers.compiled.cross import CompiledCross
from tercet.scorers.compiled.poly import CompiledPoly
from tercet.scorers.numpy_layers import normalize

Scorer: TypeAlias = CompiledBi | CompiledPoly | CompiledCross

ROUNDS = 3
TOP = 10
CONTEXTS, CANDIDATES = 20, 50
"""How many contexts are ranked, and for a cross-encoder against how many candidates."""


class Cost(NamedTuple):
    """int8 compared with fp32.

    ``same_top`` is the share of the ten best candidates of a text on which both agree; ``agreement`` the mean
    and the smallest cosine of two vectors, or for a cross-encoder the correlation of the scores of a text.
    """

    texts: int
    same_top: float
    agreement: tuple[float, float]
    speed_up: float


def measured_cost(exact: Scorer, quantized: Scorer, texts: Sequence[str]) -> Cost:
    """The cost on texts; the speed-up is that of processor time."""
    if isinstance(exact, CompiledCross) and isinstance(quantized, CompiledCross):
        agreement, top = _cross_agreement(exact, quantized, texts)
    elif isinstance(exact, CompiledCross) or isinstance(quantized, CompiledCross):
        raise TypeError("both scorers must be of one kind")
    else:
        agreement, top = _dual_agreement(exact, quantized, texts)
    rounds = [(_seconds(exact, texts), _seconds(quantized, texts)) for _ in range(ROUNDS)]
    return Cost(len(texts), top, agreement, median(one / two for one, two in rounds))


def run_texts(scorer: Scorer, texts: Sequence[str]) -> None:
    """Let a scorer read the texts on both sides; a cross-encoder reads each with the next one."""
    if isinstance(scorer, CompiledCross):
        scorer.score_pairs(texts[:-1], texts[1:])
        return
    if not (isinstance(scorer, CompiledBi) and scorer.is_siamese):
        scorer.encode_contexts(texts)
    scorer.encode_candidates(texts)


def same_top(exact: Floats, other: Floats) -> float:
    """The share of the best candidates of each row ``[N, C]`` on which both agree."""
    best = [np.argsort(-scores, axis=1, kind="stable")[:, :TOP] for scores in (exact, other)]
    shared = [len(set(one) & set(two)) for one, two in zip(best[0].tolist(), best[1].tolist(), strict=True)]
    return float(np.mean(shared)) / int(best[0].shape[1])


def _dual_agreement(
    exact: CompiledBi | CompiledPoly, quantized: CompiledBi | CompiledPoly, texts: Sequence[str]
) -> tuple[tuple[float, float], float]:
    vectors = [normalize(scorer.encode_candidates(texts)) for scorer in (exact, quantized)]
    cosines = (vectors[0] * vectors[1]).sum(axis=1)
    scores = [_others_only(scorer.score_many(texts, texts)) for scorer in (exact, quantized)]
    return (float(cosines.mean()), float(cosines.min())), same_top(*scores)


def _cross_agreement(
    exact: CompiledCross, quantized: CompiledCross, texts: Sequence[str]
) -> tuple[tuple[float, float], float]:
    contexts, candidates = texts[:CONTEXTS], texts[-CANDIDATES:]
    scores = [scorer.score_many(contexts, candidates) for scorer in (exact, quantized)]
    found = [float(np.corrcoef(one, two)[0, 1]) for one, two in zip(*scores, strict=True)]
    return (float(np.mean(found)), min(found)), same_top(*scores)


def _others_only(scores: Floats) -> Floats:
    """The scores of all texts against all, without those of a text against itself."""
    found = scores.copy()
    np.fill_diagonal(found, -np.inf)
    return found


def _seconds(scorer: Scorer, texts: Sequence[str]) -> float:
    start = process_time()
    run_texts(scorer, texts)
    return process_time() - start
