"""Scored pairs as rows that a student can be taught by: a text, its best partner, another one."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

HELD_OUT = 10
"""Of so many texts one is looked at instead of learnt from, with all its rows."""


def split(rows: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows to learn from and rows to look at, which share no context."""
    parts: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for row in rows:
        digest = sha256(row["context"].encode()).digest()
        parts[digest[0] % HELD_OUT == 0].append(row)
    return parts


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
