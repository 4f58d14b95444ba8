"""Scores of many contexts, a block at a time."""

from collections.abc import Iterator, Sequence

import numpy as np

from tercet.models.dual import DualEncoder
from tercet.models.poly import PolyEncoder
from tercet.models.scorer import Scorer
from tercet.records import Context, Floats, Lesson

CELLS = 2**24
"""Scores that are held at once: 64 MB."""


def score_blocks(scorer: Scorer, contexts: Sequence[Context], texts: Sequence[str]) -> Iterator[Floats]:
    """``[b, C]``, b contexts at a time; texts are encoded once where they can be."""
    size = max(1, CELLS // len(texts))
    blocks = (contexts[start : start + size] for start in range(0, len(contexts), size))
    symmetric = isinstance(scorer, PolyEncoder) and scorer.config.symmetric
    if not isinstance(scorer, DualEncoder) or symmetric:
        yield from (scorer.score_many(block, texts) for block in blocks)
        return
    vectors = scorer.encode_candidates(texts)
    for block in blocks:
        yield scorer.match(scorer.encode_contexts(block), vectors)


def given_scores(scorer: Scorer, lessons: Sequence[Lesson]) -> Floats:
    """``[N, C]``: each context against its own candidates; where a row has fewer, the rest is −∞."""
    counts = [len(lesson.candidates) for lesson in lessons]
    flat = scorer.score_pairs(
        [lesson.context for lesson in lessons for _ in lesson.candidates],
        [text for lesson in lessons for text in lesson.candidates],
    )
    rows = np.full((len(counts), max(counts)), -np.inf, dtype=np.float32)
    rows[np.arange(max(counts)) < np.array(counts)[:, None]] = flat
    return rows
