import pytest
from tests.conftest import make_tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

import tercet
from tercet.models.tokenizer import Passage, Tokenizer

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
    assert encoded.cut == 0


def test_padding_and_truncation_in_the_file_do_not_matter() -> None:
    pretrained = make_tokenizer()
    assert pretrained.backend_tokenizer.padding is not None
    encoded = Tokenizer(pretrained, max_tokens=48).encode(
        [Passage("one two three four five six seven eight nine")]
    )
    assert len(encoded[0].ids) == 11


def test_a_text_keeps_its_beginning(pretrained: PreTrainedTokenizerBase) -> None:
    encoded = Tokenizer(pretrained, max_tokens=5).encode([Passage("one two three four five")])[0]
    assert words(pretrained, encoded.ids) == "<s> one two three </s>"
    assert encoded.cut == 2


def test_a_dialogue_keeps_its_newest_tokens(pretrained: PreTrainedTokenizerBase) -> None:
    encoded = Tokenizer(pretrained, max_tokens=5).encode([Passage("one two three four five", keep_end=True)])[
        0
    ]
    assert words(pretrained, encoded.ids) == "<s> three four five </s>"
    assert encoded.cut == 2


@pytest.mark.parametrize(("keep_end", "kept"), [(True, "five six"), (False, "one two")])
def test_a_prompt_outlasts_the_text(pretrained: PreTrainedTokenizerBase, keep_end: bool, kept: str) -> None:
    tokenizer = Tokenizer(pretrained, max_tokens=6)
    passage = Passage("one two three four five six", keep_end=keep_end)
    encoded = tokenizer.encode([passage], prompt="old new ")[0]
    assert words(pretrained, encoded.ids) == f"<s> old new {kept} </s>"
    assert encoded.cut == 4


def test_a_prompt_counts_its_special_token(pretrained: PreTrainedTokenizerBase) -> None:
    tokenizer = Tokenizer(pretrained, max_tokens=48)
    assert tokenizer.prompt_length("old new ") == 3
    assert tokenizer.prompt_length("") == 0


def test_a_folder_may_ask_to_keep_the_end_of_every_text() -> None:
    pretrained = make_tokenizer()
    pretrained.truncation_side = "left"
    encoded = Tokenizer(pretrained, max_tokens=4).encode([Passage("one two three")])[0]
    assert words(pretrained, encoded.ids) == "<s> two three </s>"


def test_a_limit_without_room_for_text_is_refused(pretrained: PreTrainedTokenizerBase) -> None:
    with pytest.raises(tercet.InputError, match="leave room for text beside 2 special tokens, got 2"):
        Tokenizer(pretrained, max_tokens=2)


def test_lowercasing_is_applied_before_the_vocabulary(pretrained: PreTrainedTokenizerBase) -> None:
    plain = Tokenizer(pretrained, max_tokens=48)
    lowered = Tokenizer(pretrained, max_tokens=48, lowercase=True)
    assert lowered.encode([Passage("The CAT")])[0].ids == plain.encode([Passage("the cat")])[0].ids


def test_a_tokenizer_config_is_obeyed(tmp_path: object) -> None:
    pretrained = make_tokenizer()
    pretrained.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert Tokenizer(again, max_tokens=9).encode([Passage("a dog")])[0].ids[0] == BEGIN
    assert Tokenizer(again, max_tokens=9).encode([Passage("a dog")])[0].ids[-1] == END
