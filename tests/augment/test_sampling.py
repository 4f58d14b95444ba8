"""New pairs: each once, none with itself, and the ones that brute force finds."""

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
from tercet.augment.new_pairs import new_pairs, wanted
from tercet.augment.sampling import (
    SamplingConfig,
    bm25_pairs,
    distinct_texts,
    pair_at,
    random_pairs,
    semantic_pairs,
    some,
)
from tercet.errors import DataError
from tercet.index.all_pairs import nearest


def test_numbers_are_pairs_in_order() -> None:
    assert [pair_at(number) for number in range(6)] == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]


@given(st.integers(2, 12), st.integers(0, 5))
def test_random_pairs_are_all_pairs_once(texts: int, seed: int) -> None:
    found = list(random_pairs(texts, seed=seed))
    assert sorted(found) == sorted(combinations(range(texts), 2))


def test_every_pair_is_as_likely_to_come_first() -> None:
    counts = dict.fromkeys(combinations(range(4), 2), 0)
    for seed in range(1200):
        counts[next(random_pairs(4, seed=seed))] += 1
    assert all(150 < count < 250 for count in counts.values())  # 200 expected, deviation 13


def test_semantic_pairs_are_those_of_brute_force() -> None:
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(40, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    products = vectors @ vectors.T
    np.fill_diagonal(products, -np.inf)
    expected = {
        (min(row, int(other)), max(row, int(other)))
        for row in range(40)
        for other in np.argsort(-products[row])[:3]
    }
    assert set(semantic_pairs(vectors, top_k=3)) == expected


@pytest.mark.parametrize("at_once", [(7, 5), (1024, 4096)], ids=["blocks", "whole"])
def test_the_nearest_are_the_largest_products(
    at_once: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tercet.index import all_pairs

    monkeypatch.setattr(all_pairs, "ROWS_AT_ONCE", at_once[0])
    monkeypatch.setattr(all_pairs, "COLUMNS_AT_ONCE", at_once[1])
    vectors = np.random.default_rng(1).normal(size=(33, 6)).astype(np.float32)
    expected = np.argsort(-(vectors @ vectors.T), axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(nearest(vectors, 4), expected)


def test_more_neighbours_than_texts_are_refused() -> None:
    with pytest.raises(tercet.InputError, match="from 1 to 3, the number of vectors, got 4"):
        nearest(np.eye(3, dtype=np.float32), 4)


def test_bm25_pairs_are_those_of_a_reference() -> None:
    chance = random.Random(0)
    words = [f"{first}{second}o" for first in "bdfgklm" for second in "aeiou"]  # no endings to be cut off
    texts = [" ".join(chance.sample(words, chance.randint(3, 8))) for _ in range(60)]
    corpus = [text.split() for text in texts]
    reference = BM25Okapi(corpus, k1=1.2, b=0.75)
    for word in reference.idf:  # rank-bm25's own may be negative
        holding = sum(word in text for text in corpus)
        reference.idf[word] = log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
    expected = set()
    for row, text in enumerate(corpus):
        scores = reference.get_scores(text)
        scores[row] = -1
        expected |= {
            (min(row, int(best)), max(row, int(best))) for best in np.argsort(-scores, kind="stable")[:3]
        }
    assert set(bm25_pairs(texts, top_k=3)) == expected


def test_a_text_that_is_not_its_own_best_has_no_partner_more() -> None:
    texts = ["cat", "cat cat cat cat", "cat cat cat", "an old dog", "the river"]
    assert list(bm25_pairs(texts, top_k=1)).count((0, 1)) == 1
    assert (0, 2) not in set(bm25_pairs(texts[:1] + texts[1:], top_k=1)) - {(1, 2)}


def test_more_partners_than_texts_are_all_texts() -> None:
    texts = ["red cat", "red dog", "red bird"]
    assert set(bm25_pairs(texts, top_k=10**12)) == {(0, 1), (0, 2), (1, 2)}


def test_texts_that_differ_by_case_or_space_are_one() -> None:
    assert distinct_texts(["A  cat", "a cat ", "", "  ", "dog"]) == ["A  cat", "dog"]


def test_some_are_drawn_by_chance_and_stay_in_order() -> None:
    pairs = list(combinations(range(20), 2))
    drawn = some(pairs, 30, seed=1)
    assert drawn == sorted(drawn, key=pairs.index)
    assert len(set(drawn)) == 30
    assert drawn != some(pairs, 30, seed=2)
    assert some(pairs, None) == pairs


@pytest.mark.parametrize("sampler", ["random", "kde", "bm25", "semantic", "bm25+semantic"])
def test_pairs_that_have_a_label_are_left_out(sampler: str, tiny_folder: Callable[[str], Path]) -> None:
    config = SamplingConfig(samplers=(sampler,), pairs=100, top_k=7)
    searcher = tercet.BiEncoder.from_backbone(tiny_folder("bert"))
    everything = new_pairs(SENTENCES, sampler, config, searcher=searcher)
    first = everything[0]
    known = {(first.context, first.candidate), (first.candidate, first.context)}
    left = new_pairs(SENTENCES, sampler, config, known=known, searcher=searcher)
    assert {frozenset(pair.parents) for pair in left} == {frozenset(pair.parents) for pair in everything} - {
        frozenset(first.parents)
    }
    assert all(pair.context == SENTENCES[pair.parents[0]] for pair in left)


def test_a_sampler_that_finds_nothing_says_so() -> None:
    with pytest.raises(DataError, match="bm25 found no pair among 2 texts"):
        new_pairs(["cat", "dog"], "bm25", SamplingConfig())


def test_kde_labels_a_pool() -> None:
    config = SamplingConfig(samplers=("kde", "random"), pairs=100, pool=7)
    assert wanted("kde", config) == 700
    assert wanted("random", config) == 100
    assert wanted("bm25", SamplingConfig()) is None
