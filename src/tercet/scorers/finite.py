"""Checks that what a model computes is finite. A ranking of NaN would be empty, and infinite scores tie."""

import numpy as np

from tercet.errors import ModelError
from tercet.records import Bools, Floats


def finite_scores(scores: Floats) -> Floats:
    """``scores`` of any shape, if all of them are finite."""
    if not _is_small(scores):
        _check(np.isfinite(scores), "scores")
    return scores


def finite_vectors(vectors: Floats) -> Floats:
    """``vectors [..., D]``, if all of them are finite and have a norm that float32 can represent."""
    if not _is_small(vectors):
        with np.errstate(all="ignore"):
            _check(np.isfinite(np.einsum("...d,...d->...", vectors, vectors)), "vectors")
    return vectors


def _is_small(values: Floats) -> bool:
    """Whether the sum of all squares is finite: one pass, and true unless a model is broken."""
    flat = values.ravel()
    with np.errstate(all="ignore"):
        return bool(np.isfinite(flat @ flat))


def _check(finite: Bools, what: str) -> None:
    wrong = np.count_nonzero(~finite)
    if wrong:
        raise ModelError(
            f"the {what} of a model must be finite, and {wrong:,} of {finite.size:,} are NaN, infinite or "
            "too large: its weights are damaged or diverged; copy the model again, or train it again with a "
            "lower learning rate; if it was loaded in fp16, which overflows at 65,504, load it in bf16"
        )
