"""Which texts a vocabulary can read, with tokenizers of several kinds."""

import unicodedata
from collections.abc import Sequence

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

import tercet
from tercet.data.sample import questions
from tercet.text import tokenizer as ours
from tercet.text.readable import (
    MAX_TEXTS,
    TokenSpan,
    Unreadable,
    find_unreadable,
    letters_by_script,
    readable_scripts,
    script_of,
)

RUSSIAN = ["мой пакет не пришёл сегодня утром", "когда мой пакет придёт", "пакет придёт сегодня утром"] * 20
CHINESE = ["我的卡被拒绝了", "我的包裹什么时候到", "请再试一次我的卡"] * 20


def test_letters_taken_apart_and_unknown_letters_are_unreadable() -> None:
    text = "да кот й"  # д а | ко т | unknown
    spans = [
        TokenSpan(0, 1, False),
        TokenSpan(1, 2, False),
        TokenSpan(3, 5, False),
        TokenSpan(5, 6, False),
        TokenSpan(7, 8, True),
    ]
    letters, unreadable = letters_by_script(text, spans)
    assert letters == {"Cyrillic": 6}
    assert unreadable == {"Cyrillic": 4}  # д, а, т and й


def test_a_letter_in_several_tokens_and_one_without_a_token_are_unreadable() -> None:
    spans = [TokenSpan(0, 1, False), TokenSpan(0, 1, False), TokenSpan(0, 1, False)]
    assert letters_by_script("가나", spans)[1] == {"Hangul": 2}
    assert letters_by_script("가나", [TokenSpan(0, 1, False), TokenSpan(1, 2, False)])[1].total() == 0


def test_one_chinese_character_per_token_is_readable_and_one_cyrillic_letter_is_not() -> None:
    spans = [TokenSpan(position, position + 1, False) for position in range(2)]
    assert letters_by_script("我的", spans)[1].total() == 0
    assert letters_by_script("かな", spans)[1].total() == 0
    assert letters_by_script("да", spans)[1].total() == 2


def test_a_space_in_a_token_does_not_hide_that_its_letter_is_alone() -> None:
    assert letters_by_script(" да", [TokenSpan(0, 2, False), TokenSpan(2, 3, False)])[1].total() == 2


def test_symbols_between_letters_of_another_script_are_readable() -> None:
    spans = [TokenSpan(position, position + 1, False) for position in range(6)]
    assert letters_by_script("5 μm π", spans)[1].total() == 0


@pytest.mark.parametrize(
    ("letter", "script"),
    [("한", "Hangul"), ("é", "Latin"), ("Ｆ", "Latin"), ("字", "Han"), ("ｶ", "Katakana"), ("я", "Cyrillic")],
)
def test_the_script_of_a_letter(letter: str, script: str) -> None:
    assert script_of(letter) == script


def test_one_unreadable_letter_is_enough() -> None:
    def apart(text: str) -> list[TokenSpan]:
        return [TokenSpan(position, position + 1, False) for position in range(len(text))]

    assert find_unreadable(["빵"], lambda text: [TokenSpan(0, 1, True)]) == Unreadable("Hangul", 1, 1)
    assert find_unreadable(["да"], apart) == Unreadable("Cyrillic", 2, 2)
    assert find_unreadable(["абвг", "дежз"], apart) == Unreadable("Cyrillic", 8, 8)


def test_a_foreign_name_in_an_english_text_is_no_reason_to_warn() -> None:
    text = "he wrote достоевский in a letter to his aunt in the city"
    assert find_unreadable([text] * 20, lambda each: [TokenSpan(9, 20, True)]) is None


def test_ascii_and_accented_texts_are_not_tokenized_and_others_only_a_few_hundred_times() -> None:
    seen: list[str] = []

    def record(text: str) -> list[TokenSpan]:
        seen.append(text)
        return []

    find_unreadable(["plain"] * 1000 + ["a garçon in a long text"] * 1000 + ["😀"] * 1000, record)
    assert seen == ["😀"] * MAX_TEXTS


READABLE = [
    "Where is my parcel?",
    "Schöne Grüße aus München, die Straße ist gesperrt",
    "L’été dernier, le garçon naïf a mangé une crêpe à Nîmes",
    "great 😀🎉👍🏽 thanks ❤️ ✓ → “quoted” – done…",
    "def f(x): return {'π': x ** 2}  # ≥ 0, 5 μm, 3 kΩ",
]


@pytest.mark.parametrize("text", READABLE)
def test_the_packaged_vocabulary_reads_latin_letters_emoji_and_code(
    text: str, minilm: tercet.BiEncoder
) -> None:
    assert find_unreadable([text], minilm.tokenizer.spans) is None


UNREADABLE = {
    "Hangul": questions("ko")[0].question,
    "Cyrillic": "Когда придёт моя посылка?",
    "Arabic": "متى تصل شحنتي اليوم",
    "Thai": "พัสดุของฉันจะมาถึงเมื่อไหร่",
    "Han": "我的卡被拒绝了请再试一次吧",
    "Devanagari": "मेरा पार्सल कब आएगा आज",
}


@pytest.mark.parametrize("script", UNREADABLE)
def test_the_packaged_vocabulary_cannot_read_other_scripts(script: str, minilm: tercet.BiEncoder) -> None:
    found = find_unreadable([UNREADABLE[script]], minilm.tokenizer.spans)
    assert found is not None
    assert found.script == script


def test_decomposed_hangul_is_unreadable_too(minilm: tercet.BiEncoder) -> None:
    found = find_unreadable([unicodedata.normalize("NFD", UNREADABLE["Hangul"])], minilm.tokenizer.spans)
    assert found is not None
    assert found.script == "Hangul"


def test_tokenizers_trained_on_a_script_read_it() -> None:
    korean = [question.question for question in questions("ko")]
    for texts in (RUSSIAN, CHINESE, korean):
        for tokenizer in (wordpiece(texts), byte_level(texts)):
            assert find_unreadable(texts, tokenizer.spans) is None


def test_a_byte_level_vocabulary_of_english_cannot_read_hangul_and_reads_french() -> None:
    tokenizer = byte_level(READABLE * 20)
    found = find_unreadable([UNREADABLE["Hangul"]], tokenizer.spans)
    assert found is not None
    assert found.share == 1
    assert find_unreadable([READABLE[2]], tokenizer.spans) is None


def wordpiece(texts: Sequence[str]) -> ours.Tokenizer:
    """A tokenizer as BERT's for Chinese and Korean, without the removal of accents, trained on texts."""
    rust = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rust.normalizer = normalizers.BertNormalizer(strip_accents=False)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[UNK]"], show_progress=False)
    rust.train_from_iterator(texts, trainer)
    return wrapped(rust)


def byte_level(texts: Sequence[str]) -> ours.Tokenizer:
    """A tokenizer as RoBERTa's, trained on texts."""
    rust = Tokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    rust.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["[UNK]"], initial_alphabet=alphabet, show_progress=False
    )
    rust.train_from_iterator(texts, trainer)
    return wrapped(rust)


def wrapped(rust: Tokenizer) -> ours.Tokenizer:
    return ours.Tokenizer(PreTrainedTokenizerFast(tokenizer_object=rust, unk_token="[UNK]"), max_tokens=64)


@pytest.mark.parametrize(
    ("model", "scripts"),
    [("bi", ["Latin"]), *((name, ["Latin", "Hangul"]) for name in ("bi-ko", "poly", "cross"))],
)
def test_the_packaged_models_read_these_scripts(model: str, scripts: list[str]) -> None:
    assert readable_scripts(tercet.load(model).tokenizer.spans) == scripts


def test_a_script_is_readable_if_most_of_its_letters_are() -> None:
    assert readable_scripts(lambda text: [TokenSpan(at, at + 1, True) for at in range(len(text))]) == [
        "Latin"  # ASCII letters count as readable
    ]
    assert "Thai" in readable_scripts(lambda text: [TokenSpan(0, len(text), False)])
