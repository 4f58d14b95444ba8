"""Pairs: which tokens survive truncation, and how they are joined; prompts at the edge of the room."""

import pytest
from tests.conftest import make_tokenizer
from tokenizers.processors import TemplateProcessing

from tercet.errors import InputError
from tercet.text.pairs import PairTokenizer
from tercet.text.tokenizer import Passage, Piece, Tokenizer

SPECIAL = 3
"""<s> context </s> candidate </s>"""


def pair_tokenizer(*, room: int, min_context_tokens: int = 2) -> PairTokenizer:
    tokenizer = Tokenizer(make_tokenizer(), max_tokens=room + SPECIAL)
    return PairTokenizer(tokenizer, min_context_tokens=min_context_tokens)


def kept(room: int, context: int, candidate: int) -> tuple[list[int], int, int]:
    """The tokens between <s> and </s> of a context 100, 101, ... and a candidate 200, 201, ..."""
    found = pair_tokenizer(room=room).pair(range(100, 100 + context), range(200, 200 + candidate))
    assert len(found.ids) == len(found.segments) <= room + SPECIAL
    texts = [token for token in found.ids if token >= 100]
    return texts, found.context_truncated, found.candidate_truncated


def test_a_pair_that_fits_keeps_every_token() -> None:
    assert kept(6, 3, 3) == ([100, 101, 102, 200, 201, 202], 0, 0)


def test_the_context_loses_its_beginning_first() -> None:
    assert kept(6, 4, 3) == ([101, 102, 103, 200, 201, 202], 1, 0)


def test_the_candidate_loses_its_end_once_the_context_is_at_its_minimum() -> None:
    assert kept(6, 9, 4) == ([107, 108, 200, 201, 202, 203], 7, 0)
    assert kept(6, 9, 5) == ([107, 108, 200, 201, 202, 203], 7, 1)
    assert kept(6, 1, 9) == ([100, 200, 201, 202, 203, 204], 0, 4)  # a short context needs no more


def test_the_minimum_of_the_context_is_at_most_half_of_the_room() -> None:
    assert pair_tokenizer(room=6, min_context_tokens=2).candidate_room == 4
    assert pair_tokenizer(room=6, min_context_tokens=3).candidate_room == 3
    assert pair_tokenizer(room=6, min_context_tokens=32).candidate_room == 3
    assert pair_tokenizer(room=2, min_context_tokens=32).candidate_room == 1


def test_a_pair_needs_room_for_two_tokens() -> None:
    with pytest.raises(InputError, match="leave room for two texts beside 3 special tokens, got 4"):
        pair_tokenizer(room=1)


def test_the_candidate_starts_after_the_tokens_of_the_context() -> None:
    found = pair_tokenizer(room=6).pair([100, 101], [200])
    assert found.candidate_start == found.ids.index(200)
    assert found.segments[found.candidate_start] == 1
    assert found.segments[: found.candidate_start] == [0] * found.candidate_start


def test_a_prompt_must_leave_room_for_one_token() -> None:
    tokenizer = Tokenizer(make_tokenizer(), max_tokens=5)  # of which two are special
    assert tokenizer.room("old new ") == 1
    with pytest.raises(InputError, match="has 3 tokens and leaves no room for text within 3"):
        tokenizer.room("old new red ")


def test_tokens_of_a_prompt_have_no_characters_in_the_text() -> None:
    tokenizer = Tokenizer(make_tokenizer(), max_tokens=9)
    pieces = tokenizer.bare_pieces("(dog", prompt="(zebra")  # one token ends where the text starts
    assert [piece.text for piece in pieces] == ["(", "zebra", "(", "dog"]  # though two are unknown
    assert [(piece.start, piece.end) for piece in pieces] == [(0, 0), (0, 0), (0, 1), (1, 4)]
    assert tokenizer.pieces(Passage("a dog"))[1:3] == [Piece("a", 0, 1), Piece("dog", 2, 5)]


def test_ids_and_segments_equal_those_of_transformers() -> None:
    pretrained = make_tokenizer()
    pretrained.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s>:1 $A:2 </s>:3 </s>:4 $B:5 </s>:6",  # as in RoBERTa, with a segment for every part
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    expected = pretrained("a dog", "the old cat", return_token_type_ids=True)
    tokenizer = PairTokenizer(Tokenizer(pretrained, max_tokens=48), min_context_tokens=2)
    found = tokenizer.pair(*tokenizer.ids(["a dog", "the old cat"]))
    assert (found.ids, found.segments) == (expected["input_ids"], expected["token_type_ids"])


def test_separate_texts_have_segment_0_unless_the_candidate_has_its_own() -> None:
    tokenizer = Tokenizer(make_tokenizer(), max_tokens=48)
    for own in (False, True):
        pairs = PairTokenizer(tokenizer, min_context_tokens=2, separate=True, candidate_segment=own)
        assert pairs.pair([100], [200, 201]).segments == [0] * 3 + [int(own)] * 4
        assert pairs.has_segments is own
    assert not tokenizer.separate_template().has_segments
