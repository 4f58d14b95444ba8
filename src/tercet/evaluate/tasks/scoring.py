"""Scores of many contexts, one block at a time."""

from collections.abc import Iterator, Sequence

import numpy as np

from tercet.records import Context, Example, Floats, Ints
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.scorer import Scorer
from tercet.scorers.text_scorer import TextScorer
from tercet.settings.chunks import ChunkConfig

SCORES_IN_MEMORY = 2**24
"""Scores that are held at once: 64 MB."""


def score_blocks(scorer: Scorer, contexts: Sequence[Context], texts: Sequence[str]) -> Iterator[Floats]:
    """``[b, C]`` per block of b contexts; a scorer that can cache vectors encodes the texts once."""
    size = max(1, SCORES_IN_MEMORY // len(texts))
    blocks = (contexts[start : start + size] for start in range(0, len(contexts), size))
    if not isinstance(scorer, DualScorer) or scorer.is_symmetric:
        yield from (scorer.score_many(block, texts) for block in blocks)
        return
    vectors = scorer.encode_candidates(texts)
    for block in blocks:
        yield scorer.match(scorer.encode_contexts(block), vectors)


def split_documents(
    scorer: Scorer, documents: Sequence[str], chunk: ChunkConfig | None
) -> tuple[list[str], Ints]:
    """The chunks of all documents, and ``[C]``: the position of the first chunk of each document.

    A baseline reads whole documents: it has no maximum length.
    """
    if chunk is None or not isinstance(scorer, TextScorer):
        return list(documents), np.arange(len(documents))
    parts = scorer.chunks(documents, chunk)
    texts = [text[part.start : part.end] for text, of in zip(documents, parts, strict=True) for part in of]
    return texts, np.cumsum([0, *map(len, parts[:-1])])


def given_scores(scorer: Scorer, examples: Sequence[Example]) -> Floats:
    """``[N, C]``: each context against its own candidates; −∞ if a row has fewer than C."""
    counts = [len(example.candidates) for example in examples]
    scores = scorer.score_pairs(
        [example.context for example in examples for _ in example.candidates],
        [text for example in examples for text in example.candidates],
    )
    rows = np.full((len(counts), max(counts)), -np.inf, dtype=np.float32)
    rows[np.arange(max(counts)) < np.array(counts)[:, None]] = scores
    return rows
