"""Similar texts in a list: the closest pairs, and clusters."""

from collections.abc import Iterable

import numpy as np

from tercet.arrays import unit_vectors
from tercet.errors import InputError
from tercet.index.all_pairs import communities, pairs_above, top_pairs
from tercet.records import ClosePair, Floats, Progress
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.scorer import Scorer

DEFAULT_COUNT = 100
"""Pairs without a count and without a threshold."""


def closest_pairs(
    scorer: Scorer,
    texts: Iterable[str],
    count: int | None = None,
    *,
    threshold: float | None = None,
    on_progress: Progress | None = None,
) -> list[ClosePair]:
    """The most similar pairs of texts, best first.

    Args:
        count: the maximum number of pairs. Default: all pairs at or above the threshold, at most 10 million;
            without a threshold, 100.
        threshold: the lowest score of a pair.
        on_progress: called with the number of texts that were compared since the last call.
    """
    return closest_vectors(text_vectors(scorer, texts), count, threshold=threshold, on_progress=on_progress)


def closest_vectors(
    vectors: Floats,
    count: int | None = None,
    *,
    threshold: float | None = None,
    on_progress: Progress | None = None,
) -> list[ClosePair]:
    """``closest_pairs`` for vectors ``[N, D]``."""
    if count is None and threshold is not None:
        pairs = pairs_above(vectors, threshold, on_progress=on_progress)
    else:
        lowest = -np.inf if threshold is None else threshold
        wanted = DEFAULT_COUNT if count is None else count
        pairs = top_pairs(vectors, wanted, threshold=lowest, on_progress=on_progress)
    return [ClosePair(int(a), int(b), float(score)) for a, b, score in zip(*pairs, strict=True)]


def clusters(
    scorer: Scorer,
    texts: Iterable[str],
    *,
    threshold: float = 0.75,
    min_size: int = 2,
    on_progress: Progress | None = None,
) -> list[list[int]]:
    """Positions of similar texts, the largest cluster first; each starts with its centre.

    Args:
        threshold: the lowest score of a text with the centre of its cluster.
        min_size: smaller clusters are dropped.
        on_progress: called with the number of texts that were compared since the last call.
    """
    vectors = text_vectors(scorer, texts)
    found = communities(vectors, threshold=threshold, min_size=min_size, on_progress=on_progress)
    return [members.tolist() for members in found]


def text_vectors(scorer: Scorer, texts: Iterable[str], *, on_progress: Progress | None = None) -> Floats:
    """``[N, D]``: vectors whose inner products are the scores of two texts, in either order.

    Args:
        on_progress: called with the number of texts that were encoded since the last call.
    """
    if not isinstance(scorer, DualScorer) or not scorer.is_siamese:
        raise InputError(
            "comparing all pairs of texts needs a bi-encoder with one tower and the same prompt on both "
            f"sides, got {type(scorer).__name__}: use such a model, or train one"
        )
    vectors = scorer.encode_candidates(texts, on_progress=on_progress)
    return unit_vectors(vectors) if scorer.uses_cosine else vectors


def unit_text_vectors(scorer: Scorer, texts: Iterable[str], *, on_progress: Progress | None = None) -> Floats:
    """``[N, D]``: vectors of norm 1, whose inner products are cosines even if the scorer uses dot products.

    Args:
        on_progress: called with the number of texts that were encoded since the last call.
    """
    return unit_vectors(text_vectors(scorer, texts, on_progress=on_progress))
