"""BM25, against its formula."""

from collections import Counter
from math import log
from pathlib import Path

import pytest

from tercet.errors import InputError
from tercet.index.lexical import LexicalIndex

TEXTS = ["the cat sat", "a dog ran and ran", "cats and dogs", "a bird"]


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    made = LexicalIndex(tmp_path)
    made.add(TEXTS)
    return made


def bm25(words: list[str], texts: list[list[str]], place: int, k1: float = 1.2, b: float = 0.75) -> float:
    """Robertson's formula, with the logarithm that stays positive."""
    mean = sum(map(len, texts)) / len(texts)
    counts = Counter(texts[place])
    total = 0.0
    for word in words:
        holding = sum(word in text for text in texts)
        weight = log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        tf = counts[word]
        total += weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(texts[place]) / mean))
    return total


def test_scores_are_bm25(index: LexicalIndex) -> None:
    stems = [["the", "cat", "sat"], ["a", "dog", "ran", "and", "ran"], ["cat", "and", "dog"], ["a", "bird"]]
    found = dict(index.search("cat ran ran", 10))
    expected = {place: bm25(["cat", "ran", "ran"], stems, place) for place in (0, 1, 2)}
    assert found == pytest.approx(expected, rel=1e-5)


def test_words_are_found_by_their_stems(index: LexicalIndex) -> None:
    assert {place for place, _ in index.search("Dogs!", 10)} == {1, 2}


def test_signs_of_a_query_language_are_words_like_others(index: LexicalIndex) -> None:
    assert index.search('text:"cat" AND -(dog^2 OR *)', 1)
    assert index.search("()[]{}!?", 3) == []


def test_texts_can_be_added_later(index: LexicalIndex) -> None:
    index.add(["a purple cat"])
    assert len(index) == 5
    assert [place for place, _ in index.search("purple", 3)] == [4]


def test_at_most_k_come_back(index: LexicalIndex) -> None:
    assert len(index.search("cat dog a", 2)) == 2
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        index.search("cat", 0)
