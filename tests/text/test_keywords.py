"""Names of groups of texts, and the words of a text."""

from math import log

import pytest

from tercet.text.keywords import group_names
from tercet.text.words import grouped, without_span, word_spans


def test_the_name_is_made_of_the_words_with_the_largest_weights() -> None:
    texts = ["red apple tree", "red apple pie", "red boat", "red moon"]
    # apple: 2 log(5/2) = 1.83; tree and pie: log(5/1) = 1.61; red: 2 log(5/4) = 0.45
    assert 2 * log(5 / 2) > log(5) > 2 * log(5 / 4)
    assert group_names(texts, [[0, 1]]) == ["apple, tree, pie"]


def test_function_words_do_not_name_a_group() -> None:
    assert group_names(["How do I reset it?", "What is the moon?"], [[0], [1]]) == ["reset", "moon"]


def test_forms_of_a_word_are_named_once() -> None:
    texts = ["verify a room", "verification of a room", "moon", "fee fees"]
    assert group_names(texts, [[0, 1], [3]]) == ["room, verification", "fees"]


def test_korean_words_lose_their_particles() -> None:
    texts = ["날씨가 어떻게 되나요?", "오늘 날씨는 맑음", "은행", "음악"]
    assert group_names(texts, [[0, 1]]) == ["날씨, 맑음"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("東京の天気", "天気, 東京"),
        ("我想取消订单", "取消, 想取, 我想"),
        ("音\uf914の天気", "天気, 音\uf914"),  # a compatibility ideograph
    ],
)
def test_japanese_and_chinese_have_readable_words(text: str, name: str) -> None:
    assert group_names([text, "other"], [[0]]) == [name]


def test_a_group_without_words_is_named_by_its_first_text() -> None:
    assert group_names(["12 🙂", "…", "x" * 3], [[0, 1]]) == ["12 🙂"]


def test_words_are_split_at_spaces_and_chinese_at_characters() -> None:
    text = "a  cat下雨 비가"
    assert [text[start:end] for start, end in word_spans(text)] == ["a", "cat", "下", "雨", "비가"]


@pytest.mark.parametrize(
    ("span", "rest"), [((0, 3), "cat sat"), ((4, 7), "the sat"), ((8, 11), "the cat"), ((0, 7), "sat")]
)
def test_a_text_without_a_word_has_no_doubled_spaces(span: tuple[int, int], rest: str) -> None:
    assert without_span("the cat sat", span) == rest


def test_many_words_are_grouped_evenly() -> None:
    spans = [(each, each + 1) for each in range(5)]
    assert grouped(spans, 5) == spans
    assert grouped(spans, 2) == [(0, 3), (3, 5)]
    assert grouped([], 2) == []
