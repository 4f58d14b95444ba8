"""Sampled pairs are distinct and equal those of exhaustive search."""

import random
from collections.abc import Callable
from itertools import combinations
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi
from tests.conftest import SENTENCES

import tercet
from tercet.augment.new_pairs import new_pairs, pairs_to_label
from tercet.augment.sampling import (
    bm25_pairs,
    distinct_texts,
    pair_at,
    random_pairs,
    semantic_pairs,
)
from tercet.errors import DataError, InputError
from tercet.index.all_pairs import nearest
from tercet.settings.augment import SamplingConfig


def test_pairs_are_numbered_in_order() -> None:
    assert [pair_at(number) for number in range(6)] == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]


@given(st.integers(2, 12), st.integers(0, 5))
def test_random_pairs_are_all_pairs_once(texts: int, seed: int) -> None:
    found = list(random_pairs(texts, seed=seed))
    assert sorted(found) == sorted(combinations(range(texts), 2))


def test_every_pair_is_equally_likely_to_be_first() -> None:
    counts = dict.fromkeys(combinations(range(4), 2), 0)
    for seed in range(1200):
        counts[next(random_pairs(4, seed=seed))] += 1
    assert all(150 < count < 250 for count in counts.values())  # 200 expected, standard deviation 13


def test_semantic_pairs_equal_brute_force() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    products = vectors @ vectors.T
    np.fill_diagonal(products, -np.inf)
    expected = {
        (min(row, int(other)), max(row, int(other)))
        for row in range(40)
        for other in np.argsort(-products[row])[:3]
    }
    assert set(semantic_pairs(vectors, top_k=3)) == expected


@pytest.mark.parametrize("block", [(7, 5), (1024, 4096)], ids=["blocks", "whole"])
def test_nearest_neighbours_have_the_largest_products(
    block: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tercet.index import all_pairs

    monkeypatch.setattr(all_pairs, "ROWS_PER_BLOCK", block[0])
    monkeypatch.setattr(all_pairs, "COLUMNS_PER_BLOCK", block[1])
    vectors = np.random.default_rng(1).normal(size=(33, 6)).astype(np.float32)
    expected = np.argsort(-(vectors @ vectors.T), axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(nearest(vectors, 4), expected)


def test_more_neighbours_than_vectors_are_refused() -> None:
    with pytest.raises(InputError, match="k must be between 1 and the number of vectors, 3, got 4"):
        nearest(np.eye(3, dtype=np.float32), 4)


def test_bm25_pairs_equal_rank_bm25() -> None:
    rng = random.Random(0)
    # the stemmer leaves these words unchanged
    words = [f"{first}{second}o" for first in "bdfgklm" for second in "aeiou"]
    texts = [" ".join(rng.sample(words, rng.randint(3, 8))) for _ in range(60)]
    corpus = [text.split() for text in texts]
    reference = BM25Okapi(corpus, k1=1.2, b=0.75)
    for word in reference.idf:  # rank-bm25's idf may be negative
        count = sum(word in text for text in corpus)
        reference.idf[word] = log(1 + (len(corpus) - count + 0.5) / (count + 0.5))
    expected = set()
    for row, text in enumerate(corpus):
        scores = reference.get_scores(text)
        scores[row] = -1
        expected |= {
            (min(row, int(best)), max(row, int(best))) for best in np.argsort(-scores, kind="stable")[:3]
        }
    assert set(bm25_pairs(texts, top_k=3)) == expected


def test_a_text_that_is_not_its_own_nearest_has_top_k_partners() -> None:
    texts = ["cat", "cat cat cat cat", "cat cat cat", "an old dog", "the river"]
    assert list(bm25_pairs(texts, top_k=1)).count((0, 1)) == 1
    assert (0, 2) not in set(bm25_pairs(texts[:1] + texts[1:], top_k=1)) - {(1, 2)}


def test_a_top_k_above_the_number_of_texts_pairs_all() -> None:
    texts = ["red cat", "red dog", "red bird"]
    assert set(bm25_pairs(texts, top_k=10**12)) == {(0, 1), (0, 2), (1, 2)}


def test_texts_that_differ_in_case_or_space_are_equal() -> None:
    assert distinct_texts(["A  cat", "a cat ", "", "  ", "dog"]) == ["A  cat", "dog"]


def test_a_limit_samples_pairs_at_random_in_their_order() -> None:
    texts = [f"red {first}{second}o" for first in "bdfg" for second in "aeiou"]

    def sampled(**settings: int | None) -> list[tuple[int, int]]:
        return [pair.parents for pair in new_pairs(texts, "bm25", SamplingConfig(top_k=19, **settings))]

    pairs = list(bm25_pairs(texts, top_k=19))
    assert sorted(pairs) == sorted(combinations(range(20), 2))
    drawn = sampled(pairs=30, seed=1)
    assert drawn == sorted(drawn, key=pairs.index)
    assert len(set(drawn)) == 30
    assert drawn != sampled(pairs=30, seed=2)
    assert sampled(pairs=None) == pairs


@pytest.mark.parametrize("sampler", ["random", "kde", "bm25", "semantic", "bm25+semantic"])
def test_labelled_pairs_are_excluded(sampler: str, tiny_folder: Callable[[str], Path]) -> None:
    config = SamplingConfig(samplers=(sampler,), pairs=100, top_k=7)
    searcher = tercet.BiEncoder.from_backbone(tiny_folder("bert"))
    every = new_pairs(SENTENCES, sampler, config, searcher=searcher)
    first = every[0]
    known = {(first.context, first.candidate), (first.candidate, first.context)}
    others = new_pairs(SENTENCES, sampler, config, known=known, searcher=searcher)
    assert {frozenset(pair.parents) for pair in others} == {frozenset(pair.parents) for pair in every} - {
        frozenset(first.parents)
    }
    assert all(pair.context == SENTENCES[pair.parents[0]] for pair in others)


def test_a_sampler_that_finds_no_pair_is_an_error() -> None:
    with pytest.raises(DataError, match="bm25 found no unlabelled pair among 2 texts"):
        new_pairs(["cat", "dog"], "bm25", SamplingConfig())


def test_kde_labels_a_pool_of_pairs() -> None:
    config = SamplingConfig(samplers=("kde", "random"), pairs=100, pool=7)
    assert pairs_to_label("kde", config) == 700
    assert pairs_to_label("random", config) == 100
    assert pairs_to_label("bm25", SamplingConfig()) is None
