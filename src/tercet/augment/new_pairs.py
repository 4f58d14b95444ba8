"""The new pairs of one sampler, without pairs that are labelled already."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tercet.augment.sampling import PositionPair, bm25_pairs, random_pairs, semantic_pairs
from tercet.augment.silver import NewPair
from tercet.data.overlap import comparison_key
from tercet.data.reservoir import reservoir_sample
from tercet.errors import DataError, InputError
from tercet.scorers.scorer import Scorer
from tercet.settings.augment import Sampler, SamplingConfig
from tercet.similar import unit_text_vectors


class SamplerSpec(NamedTuple):
    """What a sampler uses, and which settings it depends on."""

    settings: tuple[str, ...]
    is_random: bool = False
    bm25: bool = False
    semantic: bool = False
    matches_gold: bool = False
    """Whether more pairs are labelled than kept, to match the distribution of gold scores."""


SAMPLERS: dict[Sampler, SamplerSpec] = {
    "random": SamplerSpec(("pairs", "seed"), is_random=True),
    "kde": SamplerSpec(("pairs", "pool", "seed"), is_random=True, matches_gold=True),
    "bm25": SamplerSpec(("pairs", "seed", "top_k"), bm25=True),
    "semantic": SamplerSpec(("pairs", "seed", "top_k"), semantic=True),
    "bm25+semantic": SamplerSpec(("pairs", "seed", "top_k"), bm25=True, semantic=True),
}


def new_pairs(
    texts: Sequence[str],
    sampler: Sampler,
    config: SamplingConfig,
    *,
    known: Collection[tuple[str, str]] = frozenset(),
    searcher: Scorer | None = None,
) -> list[NewPair]:
    """Pairs of different texts, each once, in one of the two orders.

    Args:
        texts: distinct texts (``distinct_texts``).
        known: the keys of labelled pairs, in both directions.
        searcher: the bi-encoder of ``semantic``.
    """
    keys = [comparison_key(text) for text in texts]
    found = (
        (left, right)
        for left, right in _sample(texts, sampler, config, searcher)
        if (keys[left], keys[right]) not in known
    )
    if SAMPLERS[sampler].is_random:
        chosen = list(islice(found, pairs_to_label(sampler, config)))
    elif config.pairs is None:
        chosen = list(found)
    else:
        chosen = reservoir_sample(found, config.pairs, seed=config.seed)
    if not chosen:
        raise DataError(f"{sampler} found no unlabelled pair among {len(texts):,} texts: add texts")
    return [NewPair(texts[left], texts[right], sampler, (left, right)) for left, right in chosen]


def pairs_to_label(sampler: Sampler, config: SamplingConfig) -> int | None:
    """The number of pairs to label; None for all that are found."""
    if config.pairs is None:
        return None
    return config.pairs * config.pool if SAMPLERS[sampler].matches_gold else config.pairs


def _sample(
    texts: Sequence[str], sampler: Sampler, config: SamplingConfig, searcher: Scorer | None
) -> Iterator[PositionPair]:
    spec = SAMPLERS[sampler]
    if spec.is_random:
        yield from random_pairs(len(texts), seed=config.seed)
    seen: set[PositionPair] = set()
    if spec.bm25:
        for pair in bm25_pairs(texts, top_k=config.top_k):
            seen.add(pair)
            yield pair
    if spec.semantic:
        if searcher is None:
            raise InputError("semantic sampling needs a bi-encoder: give a searcher")
        found = semantic_pairs(unit_text_vectors(searcher, texts), top_k=config.top_k)
        yield from (pair for pair in found if pair not in seen)
