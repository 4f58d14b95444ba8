"""The warning about a script that the vocabulary cannot read."""

import warnings

import pytest

import tercet
from tercet.data.sample import questions
from tercet.errors import UnreadableTextWarning

KOREAN = [question.question for question in questions("ko")]
ENGLISH = [question.question for question in questions("en")]


def warnings_of(scorer: tercet.Scorer, texts: list[str]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scorer.score(texts[0], texts[:4])
        scorer.score(texts[1], texts[:4])
    return [str(each.message) for each in caught if each.category is UnreadableTextWarning]


def test_korean_texts_get_one_warning_that_says_what_works() -> None:
    scorer = tercet.load("bi", device="cpu")
    assert warnings_of(scorer, ENGLISH) == []
    (message,) = warnings_of(scorer, KOREAN)
    assert "cannot read Hangul: 100% of" in message
    assert "--mode lexical" in message


@pytest.mark.parametrize("name", ["bi-ko", "poly", "cross"])
def test_bilingual_models_read_korean_and_warn_of_other_scripts(name: str) -> None:
    scorer = tercet.load(name)
    assert warnings_of(scorer, KOREAN) == []
    (message,) = warnings_of(scorer, ["ร้านเปิดกี่โมง", "พัสดุจะมาถึงเมื่อไร"])
    assert "cannot read Thai" in message


def test_a_dialogue_is_examined_too() -> None:
    scorer = tercet.load("bi", device="cpu")
    with pytest.warns(UnreadableTextWarning, match="Hangul"):
        scorer.score(KOREAN[:3], ENGLISH[:2])


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_an_explanation_of_a_short_korean_query_warns_too(runtime: str) -> None:
    scorer = tercet.load("bi", runtime=runtime)
    with pytest.warns(UnreadableTextWarning, match="Hangul"):
        scorer.explain("빵", ENGLISH[0])
