"""The sample data keeps the shape that the demo, the docs and other tests rely on."""

import unicodedata
from collections import Counter

import pytest

from tercet.data.sample import (
    LANGUAGES,
    PARALLEL,
    RETRIEVAL_SETS,
    chats,
    dialogues,
    pairs,
    questions,
    sample_folder,
    sample_path,
)
from tercet.data.sources import open_source
from tercet.errors import InputError
from tercet.inputs import check_text

HANGUL = range(0xAC00, 0xD7A4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_answer_belongs_to_one_question(language: str) -> None:
    found = questions(language)  # type: ignore[arg-type]
    assert len(found) >= 100
    for column in ("question", "answer", "context"):
        assert len({getattr(entry, column) for entry in found}) == len(found), column
    assert all(entry.question != entry.context for entry in found)  # a user asks in other words


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogues_have_a_context_and_a_reply(language: str) -> None:
    talks = dialogues(language)  # type: ignore[arg-type]
    assert len(talks) == 40
    assert all(4 <= len(talk.turns) <= 9 for talk in talks)
    assert len({talk.turns[-1] for talk in talks}) == len(talks)


@pytest.mark.parametrize("language", LANGUAGES)
def test_chats_have_a_context_and_a_reply_of_their_own(language: str) -> None:
    talks = chats(language)  # type: ignore[arg-type]
    assert len(talks) >= 40
    assert all(4 <= len(talk.turns) <= 8 for talk in talks)
    assert len({talk.turns[-1] for talk in talks}) == len(talks)


@pytest.mark.parametrize("language", LANGUAGES)
def test_scores_of_pairs_are_balanced_from_0_to_5(language: str) -> None:
    scored = pairs(language)  # type: ignore[arg-type]
    assert set(Counter(int(pair.score) for pair in scored)) == {0, 1, 2, 3, 4, 5}
    assert len(set(Counter(int(pair.score) for pair in scored).values())) == 1
    assert all(0 <= pair.score <= 5 for pair in scored)


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_normalized_and_in_their_language(language: str) -> None:
    texts = [text for pair in pairs(language) for text in (pair.context, pair.candidate)]  # type: ignore[arg-type]
    for text in texts:
        check_text(text, "text")
        assert text == unicodedata.normalize("NFC", text.strip())
        assert any(ord(letter) in HANGUL for letter in text) == (language == "ko")


def test_parallel_sentences_are_in_their_languages_and_differ() -> None:
    rows = [row.columns for row in open_source(f"sample:{PARALLEL}")]
    assert len(rows) == len({row["en"] for row in rows}) == len({row["ko"] for row in rows}) == 60
    for row in rows:
        assert row["en"].isascii()
        assert any(ord(letter) in HANGUL for letter in row["ko"])


@pytest.mark.parametrize("name", RETRIEVAL_SETS)
def test_a_third_of_the_documents_of_a_retrieval_set_is_long(name: str) -> None:
    texts = [row.columns["text"] for row in open_source(f"sample:{name}/corpus")]
    assert len(texts) == len(set(texts)) == 40
    assert sum(len(text.split()) > 250 for text in texts) == 13  # more than 256 tokens
    assert len(list(open_source(f"sample:{name}/queries"))) == 18


def test_a_retrieval_set_is_not_one_file() -> None:
    with pytest.raises(InputError, match=r"several files: use abstracts\.en/corpus or abstracts\.en/queries"):
        sample_path("abstracts.en")
    with pytest.raises(InputError, match=r"faq\.en is not a retrieval set: write KIND:sample:faq\.en"):
        sample_folder("faq.en")


def test_an_unknown_sample_is_named_with_the_choices() -> None:
    with pytest.raises(InputError, match=r"sample must be one of faq\.en, faq\.ko"):
        sample_path("faq.fr")
    with pytest.raises(InputError, match="language must be one of en, ko"):
        questions("fr")  # type: ignore[arg-type]
