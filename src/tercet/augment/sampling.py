"""New pairs of texts that are worth a label: by chance, by words, by meaning.

A sampler gives places of two different texts, the lower first, each pair once. Two texts by chance have
nothing in common nearly always, and a model learns little from them; pairs that share words or meaning are of
all grades. Which scores come out is steered by ``like_gold``.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias, get_args

import numpy as np

from tercet.data.drawing import drawn
from tercet.data.overlap import folded
from tercet.errors import DataError, InputError
from tercet.index.all_pairs import nearest
from tercet.index.lexical import LexicalIndex
from tercet.inputs import check_choice, check_count, check_seed
from tercet.records import Floats

Sampler: TypeAlias = Literal["random", "kde", "bm25", "semantic", "bm25+semantic"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)

Places: TypeAlias = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """Which pairs are made, and how many."""

    samplers: tuple[Sampler, ...] = ("bm25",)
    """``random``: two texts by chance. ``kde``: of many such pairs those whose scores are spread as gold's
    are. ``bm25``: texts that share words. ``semantic``: texts that mean the same to a bi-encoder.
    ``bm25+semantic``: what either of them finds. Each makes a student of its own."""
    top_k: int = 5
    """How many texts ``bm25`` and ``semantic`` look for beside each text."""
    pairs: int | None = None
    """At most so many pairs by each sampler, drawn by chance; ``random`` and ``kde`` need a number."""
    pool: int = 10
    """Of ``kde``: how many random pairs are labelled for each that is kept."""
    searcher: str = "bi"
    """The bi-encoder of ``semantic``."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.samplers or len(set(self.samplers)) != len(self.samplers):
            raise InputError(f"samplers must be different ones of {', '.join(SAMPLERS)}, got {self.samplers}")
        for sampler in self.samplers:
            check_choice("a sampler", sampler, SAMPLERS)
        check_count("top_k", self.top_k)
        check_count("pool", self.pool)
        check_seed(self.seed)
        if self.pairs is not None:
            check_count("pairs", self.pairs)
        elif {"random", "kde"} & set(self.samplers):
            raise InputError(
                "random and kde could go on for ever: say how many pairs are wanted (pairs = ...)"
            )


def distinct_texts(texts: Iterable[str]) -> list[str]:
    """Each text once, but for case and white space; empty ones are left out."""
    found: dict[str, str] = {}
    for text in texts:
        if key := folded(text):
            found.setdefault(key, text)
    if len(found) < 2:
        raise DataError(f"pairs are made of at least two different texts, got {len(found)}")
    return list(found.values())


def random_pairs(texts: int, *, seed: int = 0) -> Iterator[Places]:
    """All pairs of so many texts, in an order by chance, until nobody asks for more."""
    chance = random.Random(seed)
    total = texts * (texts - 1) // 2
    drawn: set[int] = set()
    while 2 * len(drawn) < total:
        number = chance.randrange(total)
        if number not in drawn:
            drawn.add(number)
            yield pair_at(number)
    left = [number for number in range(total) if number not in drawn]  # few enough to be listed
    chance.shuffle(left)
    yield from map(pair_at, left)


def pair_at(number: int) -> Places:
    """The pair of a number, in the order (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    second = (1 + isqrt(1 + 8 * number)) // 2
    return number - second * (second - 1) // 2, second


def bm25_pairs(texts: Sequence[str], *, top_k: int) -> Iterator[Places]:
    """Each text with the ``top_k`` others that share its weightiest words."""
    with TemporaryDirectory() as folder:
        index = LexicalIndex(Path(folder))
        index.add(np.arange(len(texts)), texts)
        deep = min(top_k + 1, len(texts))
        yield from _once(
            ((place, [found for found, _ in index.search(text, deep)]) for place, text in enumerate(texts)),
            top_k,
        )


def semantic_pairs(vectors: Floats, *, top_k: int) -> Iterator[Places]:
    """Each text with the ``top_k`` others whose vectors are nearest, ``[N, D]`` of length 1."""
    found = nearest(vectors, min(top_k + 1, len(vectors)))
    yield from _once(((place, row.tolist()) for place, row in enumerate(found)), top_k)


def some(pairs: Iterable[Places], count: int | None, *, seed: int = 0) -> list[Places]:
    """At most ``count`` of the pairs, drawn by chance, in their order."""
    return list(pairs) if count is None else drawn(pairs, count, seed=seed)


def _once(found: Iterable[tuple[int, Sequence[int]]], top_k: int) -> Iterator[Places]:
    """Each pair once, none of a text with itself, which need not be the best for itself."""
    seen: set[Places] = set()
    for place, partners in found:
        for other in [each for each in partners if each != place][:top_k]:
            pair = (place, other) if place < other else (other, place)
            if pair not in seen:
                seen.add(pair)
                yield pair
