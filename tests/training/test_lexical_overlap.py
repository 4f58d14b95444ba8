"""Lexical overlap, worked out by hand."""

import math
from unicodedata import normalize

import pytest

from tercet.training.lexical_overlap import LexicalOverlap


def test_overlap_is_the_share_of_words_in_common() -> None:
    overlap = LexicalOverlap(["a b", "c d"])
    found = overlap.of_contexts(["a b", "a b", "a b"], ["b a c", "c d", "a c"])
    assert found.tolist() == pytest.approx([1, 0, 0.5])  # both words have the same idf


def test_a_rare_word_weighs_more_as_in_bm25() -> None:
    overlap = LexicalOverlap(["the cat", "the dog", "the end"])
    the, cat = math.log(1 + 0.5 / 3.5), math.log(1 + 2.5 / 1.5)
    assert overlap.of_contexts(["the cat"], ["the end"])[0] == pytest.approx(the / (the + cat))
    assert overlap.of_contexts(["the cat"], ["a cat"])[0] == pytest.approx(cat / (the + cat))


def test_an_unseen_word_weighs_most() -> None:
    overlap = LexicalOverlap(["the cat", "the dog"])
    unseen, cat = math.log(1 + 2.5 / 0.5), math.log(1 + 1.5 / 1.5)
    assert overlap.of_contexts(["cat xylograph"], ["a xylograph"])[0] == pytest.approx(
        unseen / (unseen + cat)
    )


def test_the_share_is_that_of_the_contexts_words() -> None:
    overlap = LexicalOverlap(["a b c d"])
    assert overlap.of_contexts(["a", "a b c d"], ["a b c d", "a"]).tolist() == pytest.approx([1, 0.25])


def test_case_and_punctuation_are_ignored_and_turns_are_one_text() -> None:
    overlap = LexicalOverlap(["a b"])
    assert overlap.of_contexts([["A!", "b?"]], ["b, a"]).tolist() == [1]


def test_korean_words_with_different_endings_overlap() -> None:
    overlap = LexicalOverlap(["학교에 갑니다", "집에 있다"])
    assert 0 < overlap.of_contexts(["학교에"], ["학교는"])[0] < 1


def test_composed_and_decomposed_letters_are_equal() -> None:
    overlap = LexicalOverlap(["학교", "café"])
    decomposed = [normalize("NFD", text) for text in ("학교", "café")]
    assert overlap.of_contexts(decomposed, ["학교", "café"]).tolist() == [1, 1]


def test_overlap_of_both_is_the_mean_of_both_directions() -> None:
    overlap = LexicalOverlap(["a b c d"])
    assert overlap.of_both(["a", "a b c d"], ["a b c d", "a"]).tolist() == pytest.approx([0.625, 0.625])


def test_a_text_without_words_has_no_overlap() -> None:
    assert LexicalOverlap(["a"]).of_contexts(["!", "a"], ["!", "?"]).tolist() == [0, 0]
