"""Which of a text's words another has."""

import math
from unicodedata import normalize

import pytest

from tercet.training.word_shares import WordShares


def test_all_words_none_and_some() -> None:
    shares = WordShares(["a b", "c d"])
    found = shares.of_pairs(["a b", "a b", "a b"], ["b a c", "c d", "a c"])
    assert found.tolist() == pytest.approx([1, 0, 0.5])  # both words are as rare


def test_a_rare_word_counts_more_as_in_bm25() -> None:
    shares = WordShares(["the cat", "the dog", "the end"])
    the, cat = math.log(1 + 0.5 / 3.5), math.log(1 + 2.5 / 1.5)
    assert shares.of_pairs(["the cat"], ["the end"])[0] == pytest.approx(the / (the + cat))
    assert shares.of_pairs(["the cat"], ["a cat"])[0] == pytest.approx(cat / (the + cat))


def test_a_word_that_was_never_seen_counts_most() -> None:
    shares = WordShares(["the cat", "the dog"])
    unseen, cat = math.log(1 + 2.5 / 0.5), math.log(1 + 1.5 / 1.5)
    assert shares.of_pairs(["cat xylograph"], ["a xylograph"])[0] == pytest.approx(unseen / (unseen + cat))


def test_it_is_the_first_texts_words_that_are_looked_for() -> None:
    shares = WordShares(["a b c d"])
    assert shares.of_pairs(["a", "a b c d"], ["a b c d", "a"]).tolist() == pytest.approx([1, 0.25])


def test_case_and_signs_do_not_count_and_turns_are_one_text() -> None:
    shares = WordShares(["a b"])
    assert shares.of_pairs([["A!", "b?"]], ["b, a"]).tolist() == [1]


def test_korean_words_are_found_under_other_endings() -> None:
    shares = WordShares(["학교에 갑니다", "집에 있다"])
    assert 0 < shares.of_pairs(["학교에"], ["학교는"])[0] < 1


def test_a_letter_looks_the_same_however_it_is_written() -> None:
    shares = WordShares(["학교", "café"])
    apart = [normalize("NFD", text) for text in ("학교", "café")]
    assert shares.of_pairs(apart, ["학교", "café"]).tolist() == [1, 1]


def test_pairs_without_a_direction_have_the_mean_of_both_ways() -> None:
    shares = WordShares(["a b c d"])
    assert shares.of_either(["a", "a b c d"], ["a b c d", "a"]).tolist() == pytest.approx([0.625, 0.625])


def test_a_text_without_words_shares_nothing() -> None:
    assert WordShares(["a"]).of_pairs(["!", "a"], ["!", "?"]).tolist() == [0, 0]
