"""What a bi-encoder is in every runtime."""

import numpy as np
from numpy.typing import ArrayLike

from tercet.arrays import unit_vectors
from tercet.errors import InputError
from tercet.inputs import describe
from tercet.records import Floats
from tercet.scorers.dual_scorer import DualScorer
from tercet.settings.models import BiConfig, Side


class BiScorer(DualScorer):
    """The scorer of Sentence-BERT: the cosine or the dot product of two vectors."""

    kind = "bi"
    config: BiConfig

    @property
    def max_codes(self) -> int:
        """1: a context has one vector."""
        return 1

    def prompt(self, side: Side) -> str:
        """The prefix of every text of a side."""
        return self.config.context_prompt if side == "context" else self.config.candidate_prompt

    @property
    def uses_cosine(self) -> bool:
        """Whether vectors must be normalized before they are compared."""
        return self.config.similarity == "cosine"

    def similarity(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """``[A, B]``: the cosines or, if the model is configured so, the dot products of encoded texts.

        Args:
            first: ``[A, D]``, as ``encode`` returns them, or one vector ``[D]``. With truncated vectors, D is
                less than the model's width.
            second: ``[B, D]`` or ``[D]``.
        """
        left, right = _vectors(first, "first"), _vectors(second, "second")
        if left.shape[1] != right.shape[1]:
            raise InputError(
                f"both must have equally many dimensions, got {left.shape[1]} and {right.shape[1]}: encode "
                "them with the same dimensions"
            )
        if self.uses_cosine:
            left, right = unit_vectors(left), unit_vectors(right)
        products: Floats = left @ right.T
        return products


def _vectors(values: ArrayLike, name: str) -> Floats:
    """``[N, D]``: the given vectors in float32."""
    try:
        vectors: Floats = np.atleast_2d(np.asarray(values, dtype=np.float32))
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be an array of vectors, got {describe(values)}: encode texts first, or compare "
            "them with score_many(texts, texts)"
        ) from None
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise InputError(f"{name} must have the shape [N, D] or [D], got {list(np.shape(values))}")
    if not np.isfinite(vectors).all():
        raise InputError(f"{name} contains NaN or infinity: numbers must be finite")
    return vectors
