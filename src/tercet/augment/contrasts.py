"""Scored pairs as examples for distillation: a text, its best-scored partner, and a worse one."""

from collections.abc import Iterable, Iterator
from typing import Any

from tercet.files.digest import text_digest

HELD_OUT = 10
"""One of this many texts is dev data, with all its rows."""


def split(rows: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Training rows and dev rows, which share no context."""
    parts: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for row in rows:
        is_dev = int(text_digest(row["context"]), base=16) % HELD_OUT == 0
        parts[is_dev].append(row)
    return parts


def contrasts(pairs: Iterable[tuple[str, str, float]]) -> Iterator[dict[str, Any]]:
    """For each text, on either side, its best partner together with every partner that scores less."""
    partners: dict[str, dict[str, float]] = {}
    for left, right, score in pairs:
        partners.setdefault(left, {})[right] = score
        partners.setdefault(right, {})[left] = score
    for text, scores in partners.items():
        best = max(scores, key=scores.__getitem__)
        for other, score in scores.items():
            if score < scores[best]:
                yield {"context": text, "candidates": [best, other], "scores": [scores[best], score]}
