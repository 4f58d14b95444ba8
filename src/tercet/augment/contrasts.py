"""Scored pairs as rows that a student can be taught by: a text, its best partner, another one."""

from collections.abc import Iterable, Iterator
from typing import Any


def contrasts(pairs: Iterable[tuple[str, str, float]]) -> Iterator[dict[str, Any]]:
    """Of each text, whichever side it stood on, the best partner against every one that scores less."""
    partners: dict[str, dict[str, float]] = {}
    for left, right, score in pairs:
        partners.setdefault(left, {})[right] = score
        partners.setdefault(right, {})[left] = score
    for text, scores in partners.items():
        best = max(scores, key=scores.__getitem__)
        for other, score in scores.items():
            if score < scores[best]:
                yield {"context": text, "candidates": [best, other], "scores": [scores[best], score]}
