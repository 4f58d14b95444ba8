"""The pairs that one sampler makes of texts, those left out that have a label already."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from tercet.augment.sampling import (
    Places,
    Sampler,
    SamplingConfig,
    bm25_pairs,
    random_pairs,
    semantic_pairs,
    some,
)
from tercet.augment.silver import NewPair
from tercet.data.overlap import folded
from tercet.errors import DataError, InputError
from tercet.models.scorer import Scorer
from tercet.similar import unit_vectors

DEPENDS_ON: dict[Sampler, tuple[str, ...]] = {
    "random": ("pairs", "seed"),
    "kde": ("pairs", "pool", "seed"),
    "bm25": ("pairs", "seed", "top_k"),
    "semantic": ("pairs", "seed", "top_k"),
    "bm25+semantic": ("pairs", "seed", "top_k"),
}
"""The settings that a sampler looks at."""


def new_pairs(
    texts: Sequence[str],
    sampler: Sampler,
    config: SamplingConfig,
    *,
    known: Collection[tuple[str, str]] = frozenset(),
    searcher: Scorer | None = None,
) -> list[NewPair]:
    """Pairs of different texts, each once, in either order.

    Args:
        texts: all different (``distinct_texts``).
        known: pairs that have a label, folded, both ways round.
        searcher: the bi-encoder of ``semantic``.
    """
    keys = [folded(text) for text in texts]
    found = (pair for pair in _found(texts, sampler, config, searcher) if _key(keys, pair) not in known)
    if sampler in ("random", "kde"):
        chosen = list(islice(found, wanted(sampler, config)))
    else:
        chosen = some(found, config.pairs, seed=config.seed)
    if not chosen:
        raise DataError(
            f"{sampler} found no pair among {len(texts):,} texts that has no label yet: give more texts"
        )
    return [NewPair(texts[left], texts[right], sampler, (left, right)) for left, right in chosen]


def wanted(sampler: Sampler, config: SamplingConfig) -> int | None:
    """How many pairs are to be labelled; None: all that are found."""
    return config.pairs * config.pool if config.pairs is not None and sampler == "kde" else config.pairs


def _found(
    texts: Sequence[str], sampler: Sampler, config: SamplingConfig, searcher: Scorer | None
) -> Iterator[Places]:
    if sampler in ("random", "kde"):
        yield from random_pairs(len(texts), seed=config.seed)
        return
    seen: set[Places] = set()
    if "bm25" in sampler:
        for pair in bm25_pairs(texts, top_k=config.top_k):
            seen.add(pair)
            yield pair
    if "semantic" in sampler:
        if searcher is None:
            raise InputError("semantic sampling needs a bi-encoder that searches")
        found = semantic_pairs(unit_vectors(searcher, texts), top_k=config.top_k)
        yield from (pair for pair in found if pair not in seen)


def _key(keys: Sequence[str], pair: Places) -> tuple[str, str]:
    return keys[pair[0]], keys[pair[1]]
