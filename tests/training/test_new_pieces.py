"""Word pieces for scripts that a tokenizer could not read."""

import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.training.wordpiece_folder import ENGLISH, KOREAN, make_wordpiece_folder
from tokenizers import normalizers

import tercet
from tercet.data.rows import read_rows
from tercet.data.sample import NAMES, sample_path
from tercet.errors import InputError
from tercet.formats.tokenizer import read_tokenizer
from tercet.settings.vocabulary import VocabularyConfig
from tercet.text.tokenizer import Tokenizer
from tercet.training.new_pieces import extend_tokenizer
from tercet.training.vocabulary import make_tokenizer

JAPANESE = [
    "毎朝、駅前の喫茶店で珈琲を飲みます。",
    "銀行は郵便局の隣にあります。",
    "パンとバターがほしいです。",
] * 3
RUSSIAN = ["Мой дом стоит у реки.", "Твой ёж живёт в лесу.", "Чёрный чай и хлеб на столе."] * 3
HINDI = ["मैं हिन्दी पढ़ता हूँ।", "यह किताब बहुत अच्छी है।", "वह स्कूल जाती है।"] * 3
ACCENTED = ["Café ÀÉÎ naïve", "İstanbul, Ångström, ẞ", "a\u0301\u0323 coo\u0308perate", "1 μm, 20 °C, Ω"]
LITTLE = VocabularyConfig(pieces=400, min_frequency=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wordpiece_folder(tmp_path_factory.mktemp("wordpiece") / "model")


@pytest.fixture
def tokenizer(folder: Path) -> Tokenizer:
    return tercet.load(folder, device="cpu").tokenizer


def extend(tokenizer: Tokenizer, texts: list[str], config: VocabularyConfig = LITTLE) -> Tokenizer:
    return extend_tokenizer(tokenizer, texts, config, first_id=len(tokenizer.pretrained))


def unknown(tokenizer: Tokenizer, text: str) -> int:
    return sum(span.unknown for span in tokenizer.spans(text))


def words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The tokens of a text as the vocabulary writes them."""
    return [tokenizer.pretrained.convert_ids_to_tokens(token) for token in tokenizer.bare_ids([text])[0]]


@pytest.mark.parametrize("texts", [KOREAN, JAPANESE, RUSSIAN, HINDI], ids=["ko", "ja", "ru", "hi"])
def test_all_letters_of_the_new_texts_have_pieces(tokenizer: Tokenizer, texts: list[str]) -> None:
    assert unknown(tokenizer, texts[0]) > 0
    extended = extend(tokenizer, [*texts, "。।、"], VocabularyConfig())
    read = [text.rstrip("。।").replace("、", " ") for text in texts]  # the base has no such punctuation
    assert sum(unknown(extended, text) for text in read) == 0


def test_frequent_words_are_one_piece(tokenizer: Tokenizer) -> None:
    assert words(extend(tokenizer, KOREAN), "우리는 아침") == ["우리는", "아침"]


def test_a_piece_that_occurs_less_often_than_min_frequency_is_not_added(tokenizer: Tokenizer) -> None:
    often, always = (
        extend(tokenizer, KOREAN, VocabularyConfig(min_frequency=count)).pretrained.get_vocab()
        for count in (3, 1)
    )
    assert "피아노를" in always
    assert "피아노를" not in often


def test_new_pieces_follow_the_known_ones_and_are_at_most_as_many_as_asked(tokenizer: Tokenizer) -> None:
    known = tokenizer.pretrained.get_vocab()
    found = extend(tokenizer, KOREAN, VocabularyConfig(pieces=120, min_frequency=1)).pretrained.get_vocab()
    assert {piece: found[piece] for piece in known} == known
    new = {piece: number for piece, number in found.items() if piece not in known}
    assert sorted(new.values()) == list(range(len(known), len(known) + len(new)))
    assert 110 < len(new) <= 120


def test_latin_words_among_the_new_texts_get_no_pieces(tokenizer: Tokenizer) -> None:
    mixed = [f"{text} xylofon qzx팝 qzx팝 zyxovon" for text in KOREAN]
    known = tokenizer.pretrained.get_vocab()
    found = extend(tokenizer, mixed, VocabularyConfig(pieces=200, min_frequency=1))
    new = found.pretrained.get_vocab().keys() - known.keys()
    assert all(any("가" <= letter <= "힣" for letter in piece) for piece in new)
    assert len(new) > 180  # Latin words take no part of the number
    assert found.bare_ids(["xylofon zyxovon"]) == tokenizer.bare_ids(["xylofon zyxovon"])


@pytest.mark.parametrize("texts", [KOREAN, JAPANESE, RUSSIAN, HINDI], ids=["ko", "ja", "ru", "hi"])
def test_texts_of_the_base_have_the_same_tokens_as_before(minilm: tercet.BiEncoder, texts: list[str]) -> None:
    extended = extend(minilm.tokenizer, texts)
    english = [name for name in NAMES if name.partition("/")[0].endswith(".en")]
    rows = [row.columns for name in english for row in read_rows(sample_path(name))]
    checked = [*ACCENTED, *(text for row in rows for text in json.dumps(row).split('"'))]
    assert len(checked) > 1000
    assert extended.bare_ids(checked) == minilm.tokenizer.bare_ids(checked)


def test_a_large_set_of_english_texts_has_the_same_tokens_as_before(minilm: tercet.BiEncoder) -> None:
    file = Path(os.environ.get("TERCET_DATA", "")) / "en_ko" / "general_train.jsonl.gz"
    if not file.is_file():
        pytest.skip("needs en_ko/general_train.jsonl.gz in $TERCET_DATA")
    texts = [row.columns["en"] for row in read_rows(file)]
    assert extend(minilm.tokenizer, KOREAN).bare_ids(texts) == minilm.tokenizer.bare_ids(texts)


@pytest.mark.parametrize(
    ("texts", "word"),
    [(KOREAN, "한국"), (JAPANESE, "がぎパバ"), (RUSSIAN, "й ё"), (HINDI, "हिन्दी")],
    ids=["ko", "ja", "ru", "hi"],
)
def test_letters_of_the_new_script_keep_their_marks(
    minilm: tercet.BiEncoder, texts: list[str], word: str
) -> None:
    base, extended = (
        each.pretrained.backend_tokenizer.normalizer.normalize_str
        for each in (minilm.tokenizer, extend(minilm.tokenizer, texts))
    )
    for form in ("NFC", "NFD"):
        assert extended(unicodedata.normalize(form, word)) == unicodedata.normalize("NFC", word)
        assert base(unicodedata.normalize(form, word)) != unicodedata.normalize("NFC", word)


def test_a_normalizer_that_keeps_the_letters_stays() -> None:
    cased = make_tokenizer(ENGLISH, size=400, lowercase=False, max_tokens=64)
    before = Tokenizer(cased, max_tokens=64)
    after = extend(before, KOREAN, VocabularyConfig())
    kinds = [type(each.pretrained.backend_tokenizer.normalizer) for each in (before, after)]
    assert kinds == [normalizers.BertNormalizer, normalizers.BertNormalizer]
    assert unknown(after, KOREAN[0]) == 0


def test_a_second_language_can_be_added(minilm: tercet.BiEncoder) -> None:
    for base in (extend(minilm.tokenizer, KOREAN), tercet.load("bi-ko", device="cpu").tokenizer):
        both = extend(base, RUSSIAN)
        assert words(both, "твой") == ["твой"]
        assert both.bare_ids([*KOREAN, *ENGLISH, *ACCENTED]) == base.bare_ids([*KOREAN, *ENGLISH, *ACCENTED])


def test_a_second_language_does_not_cost_the_marks_of_the_first(minilm: tercet.BiEncoder) -> None:
    both = extend(extend(minilm.tokenizer, JAPANESE), RUSSIAN)
    normalize = both.pretrained.backend_tokenizer.normalizer.normalize_str
    assert normalize("バター мой café") == "バター мой cafe"


def test_the_same_texts_lead_to_the_same_pieces(tokenizer: Tokenizer) -> None:
    first, *others = (extend(tokenizer, KOREAN).pretrained.get_vocab() for _ in range(4))
    assert all(other == first for other in others)


def test_an_extended_tokenizer_survives_saving(minilm: tercet.BiEncoder, tmp_path: Path) -> None:
    extended = extend(minilm.tokenizer, KOREAN)
    extended.pretrained.save_pretrained(tmp_path)
    again = Tokenizer(read_tokenizer(tmp_path), max_tokens=extended.max_tokens)
    texts = [*KOREAN, *ENGLISH, *ACCENTED]
    assert again.bare_ids(texts) == extended.bare_ids(texts)
    assert again.pair_template() == minilm.tokenizer.pair_template()


@pytest.mark.parametrize("texts", [ENGLISH, ["Où est la gare ?", "J'ai déjà mangé.", "Ça va très bien."]])
def test_a_language_that_the_tokenizer_reads_is_refused(minilm: tercet.BiEncoder, texts: list[str]) -> None:
    with pytest.raises(InputError, match=r"reads the translations already \(0.0% of their letters"):
        extend(minilm.tokenizer, texts)


def test_korean_is_refused_for_a_model_that_reads_it() -> None:
    with pytest.raises(InputError, match="reads the translations already"):
        extend(tercet.load("bi-ko", device="cpu").tokenizer, KOREAN)


def test_other_tokenizers_than_wordpiece_are_refused(tiny_folder: Callable[[str], Path]) -> None:
    tokenizer = tercet.load(tiny_folder("bert"), device="cpu").tokenizer
    message = (
        r"need a WordPiece tokenizer, such as that of BERT.* and this is WordLevel: choose another model"
    )
    with pytest.raises(InputError, match=message):
        extend(tokenizer, KOREAN)


def test_a_normalizer_that_changes_the_letters_for_other_reasons_is_refused(tokenizer: Tokenizer) -> None:
    rust = tokenizer.pretrained.backend_tokenizer
    rust.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    with pytest.raises(InputError, match="normalizer changes letters of Hangul, and only that of BERT"):
        extend(Tokenizer(tokenizer.pretrained, max_tokens=64), KOREAN)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pieces": 0}, r"pieces must be at least 1, got 0: remove \[vocabulary\]"),
        ({"pieces": -1}, "pieces must be at least 1, got -1"),
        ({"min_frequency": 0}, "min_frequency must be at least 1"),
        ({"extension": 1}, "extension must be"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        VocabularyConfig(**settings)  # type: ignore[arg-type]
