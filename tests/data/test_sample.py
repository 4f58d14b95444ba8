"""The sample data keeps the shape that the demo, the docs and other tests rely on."""

import unicodedata
from collections import Counter

import pytest

import tercet
from tercet.data.sample import LANGUAGES, dialogues, pairs, questions, sample_path
from tercet.inputs import check_text

HANGUL = range(0xAC00, 0xD7A4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_answer_belongs_to_one_question(language: str) -> None:
    asked = questions(language)  # type: ignore[arg-type]
    assert len(asked) >= 100
    assert (
        len({question.answer for question in asked})
        == len({question.context for question in asked})
        == len(asked)
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogues_have_a_context_and_a_reply(language: str) -> None:
    talks = dialogues(language)  # type: ignore[arg-type]
    assert len(talks) == 40
    assert all(4 <= len(talk.turns) <= 9 for talk in talks)
    assert len({talk.turns[-1] for talk in talks}) == len(talks)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pairs_fill_every_grade_from_0_to_5_alike(language: str) -> None:
    graded = pairs(language)  # type: ignore[arg-type]
    assert set(Counter(int(pair.score) for pair in graded)) == {0, 1, 2, 3, 4, 5}
    assert len(set(Counter(int(pair.score) for pair in graded).values())) == 1
    assert all(0 <= pair.score <= 5 for pair in graded)


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_clean_and_in_their_language(language: str) -> None:
    texts = [text for pair in pairs(language) for text in (pair.context, pair.candidate)]  # type: ignore[arg-type]
    for text in texts:
        check_text(text, "text")
        assert text == unicodedata.normalize("NFC", text.strip())
        assert any(ord(letter) in HANGUL for letter in text) == (language == "ko")


def test_an_unknown_sample_is_named_with_the_choices() -> None:
    with pytest.raises(tercet.InputError, match=r"sample must be one of faq\.en, faq\.ko"):
        sample_path("faq.fr")
    with pytest.raises(tercet.InputError, match="language must be one of en, ko"):
        questions("fr")  # type: ignore[arg-type]
