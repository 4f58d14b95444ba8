"""The tokenizer: equal to transformers, with tercet's own truncation."""

from pathlib import Path

import pytest
from tests.conftest import make_tokenizer
from tokenizers import models, normalizers
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from tercet.errors import InputError, ModelError
from tercet.text.tokenizer import SEGMENTS, Passage, Tokenizer, tokenizer_errors

BEGIN, END = 0, 2


@pytest.fixture(scope="module")
def pretrained() -> PreTrainedTokenizerBase:
    return make_tokenizer()


def words(pretrained: PreTrainedTokenizerBase, ids: list[int]) -> str:
    return pretrained.decode(ids)


def test_ids_equal_those_of_transformers(pretrained: PreTrainedTokenizerBase) -> None:
    text = "the cat sat on the mat under the old tree"
    encoded = Tokenizer(pretrained, max_tokens=48).encode([Passage(text)])[0]
    assert encoded.ids == pretrained(text, truncation=False, padding=False).input_ids
    assert encoded.truncated == 0


def test_padding_and_truncation_of_the_folder_are_ignored() -> None:
    pretrained = make_tokenizer()
    assert pretrained.backend_tokenizer.padding is not None
    encoded = Tokenizer(pretrained, max_tokens=48).encode(
        [Passage("one two three four five six seven eight nine")]
    )
    assert len(encoded[0].ids) == 11


def test_a_long_text_keeps_its_beginning(pretrained: PreTrainedTokenizerBase) -> None:
    encoded = Tokenizer(pretrained, max_tokens=5).encode([Passage("one two three four five")])[0]
    assert words(pretrained, encoded.ids) == "<s> one two three </s>"
    assert encoded.truncated == 2


def test_a_long_dialogue_keeps_its_newest_tokens(pretrained: PreTrainedTokenizerBase) -> None:
    passage = Passage("one two three four five", keep_end=True)
    encoded = Tokenizer(pretrained, max_tokens=5).encode([passage])[0]
    assert words(pretrained, encoded.ids) == "<s> three four five </s>"
    assert encoded.truncated == 2


@pytest.mark.parametrize(("keep_end", "kept"), [(True, "five six"), (False, "one two")])
def test_a_prompt_is_kept_when_the_text_is_truncated(
    pretrained: PreTrainedTokenizerBase, keep_end: bool, kept: str
) -> None:
    tokenizer = Tokenizer(pretrained, max_tokens=6)
    passage = Passage("one two three four five six", keep_end=keep_end)
    encoded = tokenizer.encode([passage], prompt="old new ")[0]
    assert words(pretrained, encoded.ids) == f"<s> old new {kept} </s>"
    assert encoded.truncated == 4


def test_the_prompt_length_includes_special_tokens(pretrained: PreTrainedTokenizerBase) -> None:
    tokenizer = Tokenizer(pretrained, max_tokens=48)
    assert tokenizer.prompt_length("old new ") == 3
    assert tokenizer.prompt_length("") == 0


def test_left_truncation_of_the_folder_keeps_the_end_of_every_text() -> None:
    pretrained = make_tokenizer()
    pretrained.truncation_side = "left"
    encoded = Tokenizer(pretrained, max_tokens=4).encode([Passage("one two three")])[0]
    assert words(pretrained, encoded.ids) == "<s> two three </s>"


def test_max_tokens_may_leave_room_for_one_token(pretrained: PreTrainedTokenizerBase) -> None:
    (tokens,) = Tokenizer(pretrained, max_tokens=3).encode([Passage("cat dog")])
    assert words(pretrained, tokens.ids[1:-1]) == "cat"


def test_max_tokens_without_room_for_text_is_refused(pretrained: PreTrainedTokenizerBase) -> None:
    with pytest.raises(InputError, match="leave room for text beside 2 special tokens, got 2"):
        Tokenizer(pretrained, max_tokens=2)


def test_lowercasing_precedes_the_vocabulary_lookup(pretrained: PreTrainedTokenizerBase) -> None:
    plain = Tokenizer(pretrained, max_tokens=48)
    lowered = Tokenizer(pretrained, max_tokens=48, lowercase=True)
    assert lowered.encode([Passage("The CAT")])[0].ids == plain.encode([Passage("the cat")])[0].ids


def test_a_saved_tokenizer_keeps_its_special_tokens(tmp_path: Path) -> None:
    pretrained = make_tokenizer()
    pretrained.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    ids = Tokenizer(loaded, max_tokens=9).encode([Passage("a dog")])[0].ids
    assert (ids[0], ids[-1]) == (BEGIN, END)


def test_a_saved_tokenizer_keeps_the_segments_that_distinguish_the_texts_of_a_pair(tmp_path: Path) -> None:
    pretrained = make_tokenizer()
    assert SEGMENTS not in pretrained.model_input_names
    Tokenizer(pretrained, max_tokens=9).use_segments()
    pretrained.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).model_input_names[-1] == SEGMENTS


def test_lowercasing_keeps_the_normalizer_of_the_folder_and_needs_none() -> None:
    pretrained = make_tokenizer()
    cat = Tokenizer(pretrained, max_tokens=9).encode([Passage("cat")])[0].ids
    for normalizer, text in ((normalizers.Replace("kitty", "cat"), "KITTY"), (None, "CAT")):
        pretrained.backend_tokenizer.normalizer = normalizer
        assert Tokenizer(pretrained, max_tokens=9, lowercase=True).encode([Passage(text)])[0].ids == cat


def test_an_unknown_token_outside_the_vocabulary_is_never_found() -> None:
    pretrained = make_tokenizer()
    pretrained.unk_token = "<missing>"  # transformers would look it up for ever
    spans = Tokenizer(pretrained, max_tokens=16).spans("cat dog")
    assert [(span.start, span.end, span.unknown) for span in spans] == [(0, 3, False), (4, 7, False)]


def test_an_unknown_token_is_marked_where_it_is(pretrained: PreTrainedTokenizerBase) -> None:
    spans = Tokenizer(pretrained, max_tokens=16).spans("cat \u9fff dog")
    assert [(span.start, span.end, span.unknown) for span in spans] == [
        (0, 3, False),
        (4, 5, True),
        (6, 9, False),
    ]


@pytest.mark.parametrize("prompt", ["", "the "])
def test_ids_without_special_tokens_become_those_of_their_text(
    pretrained: PreTrainedTokenizerBase, prompt: str
) -> None:
    tokenizer = Tokenizer(pretrained, max_tokens=6)
    for text in ("cat dog", "cat dog bird fish cat dog bird"):  # the second is truncated
        (bare,) = tokenizer.bare_ids([text])
        assert tokenizer.from_ids(bare, prompt=prompt) == tokenizer.encode([Passage(text)], prompt=prompt)[0]


def test_ids_that_are_not_in_the_vocabulary_are_refused(pretrained: PreTrainedTokenizerBase) -> None:
    tokenizer = Tokenizer(pretrained, max_tokens=6)
    size = len(pretrained)
    assert tokenizer.from_ids([0, size - 1]).ids == [BEGIN, 0, size - 1, END]
    for ids, got in (([size], size), ([3, -1], -1), ([], "none")):
        with pytest.raises(InputError, match=f"each from 0 to {size - 1}, got {got}"):
            tokenizer.from_ids(ids)


def test_an_error_of_the_library_can_be_printed() -> None:
    with pytest.raises(ModelError, match="d800") as raised, tokenizer_errors("tokenizer.json"):
        raise ValueError("current value: \ud800")
    str(raised.value).encode()


def test_a_text_with_more_characters_than_the_limit_is_refused(
    pretrained: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_TEXT_CHARACTERS", "65536")
    tokenizer = Tokenizer(pretrained, max_tokens=48)
    allowed = "cat " * (65536 // 4)
    for tokenize in (tokenizer.bare_ids, tokenizer.word_pieces):
        assert len(tokenize(["cat", allowed])) == 2
        with pytest.raises(InputError, match="at most 65,536 characters, got 65,537: split it"):
            tokenize(["cat", allowed + "s"])
    with pytest.raises(InputError, match="at most 65,536 characters, got 65,537: split it"):
        tokenizer.spans(allowed + "s")


def test_the_highest_id_may_belong_to_an_added_token() -> None:
    pretrained = make_tokenizer()
    last = len(pretrained)
    pretrained.add_tokens(["<extra>"])
    assert Tokenizer(pretrained, max_tokens=9).highest_id() == last


def fails_on_unknown_words() -> PreTrainedTokenizerBase:
    pretrained = make_tokenizer()
    pretrained.backend_tokenizer.model = models.WordLevel({"a": 0, "b": 1}, unk_token="<missing>")
    return pretrained


def test_an_error_names_the_file_of_the_tokenizer(tmp_path: Path) -> None:
    fails_on_unknown_words().save_pretrained(tmp_path)
    tokenizer = Tokenizer(AutoTokenizer.from_pretrained(tmp_path), max_tokens=9)
    with pytest.raises(ModelError, match=f"the tokenizer of {tmp_path / 'tokenizer.json'} fails"):
        tokenizer.bare_ids(["zebra"])


def test_an_error_of_a_tokenizer_without_a_folder_says_this_model() -> None:
    tokenizer = Tokenizer(fails_on_unknown_words(), max_tokens=9)
    with pytest.raises(ModelError, match="the tokenizer of this model fails"):
        tokenizer.bare_ids(["zebra"])
