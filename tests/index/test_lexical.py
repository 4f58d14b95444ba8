"""BM25 scores, compared with the formula."""

from collections import Counter
from math import log
from pathlib import Path

import numpy as np
import pytest

from tercet.errors import InputError
from tercet.index.lexical import LexicalIndex
from tercet.text.cjk import split_cjk

TEXTS = ["the cat sat", "a dog ran and ran", "cats and dogs", "a bird"]


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    index = LexicalIndex(tmp_path)
    index.add(np.arange(4), TEXTS)
    return index


def bm25(terms: list[str], texts: list[list[str]], position: int, k1: float = 1.2, b: float = 0.75) -> float:
    """Robertson's formula, with the variant of the IDF that is never negative."""
    mean = sum(map(len, texts)) / len(texts)
    counts = Counter(texts[position])
    total = 0.0
    for term in terms:
        frequency = sum(term in text for text in texts)
        idf = log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
        tf = counts[term]
        total += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(texts[position]) / mean))
    return total


def test_scores_are_bm25(index: LexicalIndex) -> None:
    stems = [["the", "cat", "sat"], ["a", "dog", "ran", "and", "ran"], ["cat", "and", "dog"], ["a", "bird"]]
    found = dict(index.search("cat ran ran", 10))
    expected = {position: bm25(["cat", "ran", "ran"], stems, position) for position in (0, 1, 2)}
    assert found == pytest.approx(expected, rel=1e-5)


def test_english_words_are_found_by_their_stems(index: LexicalIndex) -> None:
    assert {position for position, _ in index.search("Dogs!", 10)} == {1, 2}


def test_query_syntax_has_no_special_meaning(index: LexicalIndex) -> None:
    assert index.search('text:"cat" AND -(dog^2 OR *)', 1)
    assert index.search("()[]{}!?", 3) == []


def test_texts_can_be_added_later(index: LexicalIndex) -> None:
    index.add(np.array([4]), ["a purple cat"])
    assert len(index) == 5
    assert [position for position, _ in index.search("purple", 3)] == [4]


def test_texts_can_be_removed_and_replaced(index: LexicalIndex) -> None:
    index.remove(np.array([0, 77]))
    assert [position for position, _ in index.search("cat", 3)] == [2]
    index.change(np.array([2]), np.array([2]), ["a purple fish"])
    assert index.search("cat", 3) == []
    assert [position for position, _ in index.search("fish", 3)] == [2]
    assert len(index) == 3


def test_a_folder_can_be_opened_again(index: LexicalIndex, tmp_path: Path) -> None:
    assert LexicalIndex(tmp_path).search("bird", 1) == index.search("bird", 1)


def test_korean_words_are_found_with_any_ending(index: LexicalIndex) -> None:
    korean = ["고양이가 의자에 앉았다", "강아지를 산책시켰다", "책 한 권", "カタカナ 漢字"]
    index.add(np.arange(10, 14), korean)
    assert [position for position, _ in index.search("고양이는", 3)] == [10]
    assert [position for position, _ in index.search("강아지와 산책", 3)] == [11]
    assert [position for position, _ in index.search("책", 3)][:1] == [12]
    assert [position for position, _ in index.search("漢字", 3)] == [13]
    assert split_cjk("A 고양이 b") == "A  고양 양이  b"


def test_at_most_k_texts_are_returned(index: LexicalIndex) -> None:
    assert len(index.search("cat dog a", 2)) == 2
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        index.search("cat", 0)
