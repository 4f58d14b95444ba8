"""Texts that are alike: the closest pairs of a list, and groups of it."""

from collections.abc import Callable, Iterable

import numpy as np

from tercet.errors import InputError
from tercet.index.all_pairs import best_pairs, communities
from tercet.models.dual import DualEncoder
from tercet.models.scorer import Scorer
from tercet.records import ClosePair, Floats

Progress = Callable[[int], None]


def closest_pairs(
    scorer: Scorer,
    texts: Iterable[str],
    count: int = 100,
    *,
    threshold: float = -np.inf,
    on_progress: Progress | None = None,
) -> list[ClosePair]:
    """The ``count`` pairs of texts that are most alike, best first, none below the threshold."""
    return closest_vectors(text_vectors(scorer, texts), count, threshold=threshold, on_progress=on_progress)


def closest_vectors(
    vectors: Floats, count: int, *, threshold: float = -np.inf, on_progress: Progress | None = None
) -> list[ClosePair]:
    """The same of vectors ``[N, D]`` that are there already."""
    found = best_pairs(vectors, count, threshold=threshold, on_progress=on_progress)
    return [ClosePair(int(a), int(b), float(score)) for a, b, score in zip(*found, strict=True)]


def groups(
    scorer: Scorer,
    texts: Iterable[str],
    *,
    threshold: float = 0.75,
    smallest: int = 2,
    on_progress: Progress | None = None,
) -> list[list[int]]:
    """Places of texts that are alike, the largest group first; each begins with its centre.

    Args:
        threshold: the least score that a text may have with the centre of its group.
        smallest: how many texts a group must have; the others are in none.
    """
    vectors = text_vectors(scorer, texts)
    found = communities(vectors, threshold=threshold, smallest=smallest, on_progress=on_progress)
    return [members.tolist() for members in found]


def text_vectors(scorer: Scorer, texts: Iterable[str], *, on_progress: Progress | None = None) -> Floats:
    """``[N, D]``: vectors whose inner products are the scores of two texts, whichever comes first."""
    if not isinstance(scorer, DualEncoder) or not scorer.siamese:
        raise InputError(
            "to compare every text with every other takes a bi-encoder of one tower, whose vectors are the "
            "same on both sides: use one, or train one"
        )
    vectors = scorer.encode_candidates(texts, on_progress=on_progress)
    return _unit(vectors) if scorer.by_angle else vectors


def unit_vectors(scorer: Scorer, texts: Iterable[str], *, on_progress: Progress | None = None) -> Floats:
    """``[N, D]``: vectors of length 1, whose inner products are cosines, whatever the scorer's scores are."""
    return _unit(text_vectors(scorer, texts, on_progress=on_progress))


def _unit(vectors: Floats) -> Floats:
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors
