"""Sampling of new pairs: at random, by BM25, or by embeddings.

A sampler yields pairs of positions of two different texts, the lower first, each pair once. Random pairs are
nearly always unrelated, and a model learns little from them; neighbours by BM25 or embeddings have all grades
of similarity.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np

from tercet.data.overlap import comparison_key
from tercet.errors import DataError
from tercet.index.all_pairs import nearest
from tercet.index.lexical import LexicalIndex
from tercet.records import Floats

PositionPair: TypeAlias = tuple[int, int]


def distinct_texts(texts: Iterable[str]) -> list[str]:
    """The distinct texts, ignoring case and white space, without empty ones."""
    found: dict[str, str] = {}
    for text in texts:
        if key := comparison_key(text):
            found.setdefault(key, text)
    if len(found) < 2:
        raise DataError(f"pairs need at least two different texts, got {len(found)}")
    return list(found.values())


def random_pairs(texts: int, *, seed: int = 0) -> Iterator[PositionPair]:
    """All pairs of ``texts`` texts, in random order."""
    rng = random.Random(seed)
    total = texts * (texts - 1) // 2
    drawn: set[int] = set()
    while 2 * len(drawn) < total:
        number = rng.randrange(total)
        if number not in drawn:
            drawn.add(number)
            yield pair_at(number)
    left = [number for number in range(total) if number not in drawn]  # few enough to list
    rng.shuffle(left)
    yield from map(pair_at, left)


def pair_at(number: int) -> PositionPair:
    """The pair with this number, in the order (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    second = (1 + isqrt(1 + 8 * number)) // 2
    return number - second * (second - 1) // 2, second


def bm25_pairs(texts: Sequence[str], *, top_k: int) -> Iterator[PositionPair]:
    """Each text with its ``top_k`` nearest other texts by BM25."""
    with TemporaryDirectory() as folder:
        index = LexicalIndex(Path(folder))
        index.add(np.arange(len(texts)), texts)
        depth = min(top_k + 1, len(texts))
        neighbours = (
            (position, [found for found, _ in index.search(text, depth)])
            for position, text in enumerate(texts)
        )
        yield from _once(neighbours, top_k)


def semantic_pairs(vectors: Floats, *, top_k: int) -> Iterator[PositionPair]:
    """Each text with its ``top_k`` nearest other texts by unit vectors ``[N, D]``."""
    rows = nearest(vectors, min(top_k + 1, len(vectors)))
    yield from _once(((position, row.tolist()) for position, row in enumerate(rows)), top_k)


def _once(neighbours: Iterable[tuple[int, Sequence[int]]], top_k: int) -> Iterator[PositionPair]:
    """Each pair once, without pairs of a text with itself, which need not be its own nearest."""
    seen: set[PositionPair] = set()
    for position, partners in neighbours:
        for other in [each for each in partners if each != position][:top_k]:
            pair = (position, other) if position < other else (other, position)
            if pair not in seen:
                seen.add(pair)
                yield pair
