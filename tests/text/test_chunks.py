"""Chunks of long texts: where they start and end."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tercet
from tercet.errors import InputError
from tercet.settings.chunks import ChunkConfig
from tercet.text.chunks import token_windows

FolderOf = Callable[[str], Path]


def test_windows_worked_out_by_hand() -> None:
    words = [2, 3, 5, 8, 9]
    assert token_windows(10, size=4, overlap=0, boundaries=([], words)) == [(0, 3), (3, 5), (5, 9), (9, 10)]
    assert token_windows(10, size=4, overlap=2, boundaries=([], words)) == [
        (0, 3), (2, 5), (3, 5), (5, 9), (8, 10),
    ]  # fmt: skip


def test_sentences_are_preferred_to_words() -> None:
    assert token_windows(12, size=6, overlap=0, boundaries=([4, 8], range(1, 12))) == [
        (0, 4),
        (4, 8),
        (8, 12),
    ]


def test_a_sentence_longer_than_a_chunk_is_split_between_words() -> None:
    assert token_windows(12, size=5, overlap=0, boundaries=([2], [2, 6, 9])) == [
        (0, 2),
        (2, 6),
        (6, 9),
        (9, 12),
    ]


def test_a_word_longer_than_a_chunk_is_split() -> None:
    assert token_windows(7, size=3, overlap=0, boundaries=([], [])) == [(0, 3), (3, 6), (6, 7)]


@given(
    count=st.integers(1, 60),
    size=st.integers(1, 20),
    overlap=st.integers(0, 19),
    words=st.sets(st.integers(1, 59)),
    sentences=st.sets(st.integers(1, 59)),
)
def test_windows_fit_overlap_within_limits_and_cover_every_token(
    count: int, size: int, overlap: int, words: set[int], sentences: set[int]
) -> None:
    overlap = min(overlap, size - 1)
    inside = sorted(at for at in words | sentences if at < count)
    windows = token_windows(
        count, size=size, overlap=overlap, boundaries=(sorted(sentences & set(inside)), inside)
    )
    assert windows[0][0] == 0
    assert windows[-1][1] == count
    assert all(0 < end - first <= size for first, end in windows)
    for (before, end), (first, next_end) in pairwise(windows):
        assert before < first <= end <= first + overlap
        assert end <= next_end


def test_chunks_of_sentences_are_read_whole_by_the_model(tiny: tercet.BiEncoder) -> None:
    sentences = ["the cat sat on the mat.", "a dog ran in the park.", "the sea is deep.", "a fish swims."]
    text = " ".join(sentences)
    one, two = (len(tiny.tokenizer.bare_ids([part])[0]) for part in (sentences[0], " ".join(sentences[:2])))
    (parts,) = tiny.chunks([text], ChunkConfig(size=one))
    assert [text[part.start : part.end] for part in parts] == sentences
    (parts,) = tiny.chunks([text], ChunkConfig(size=two, overlap=one))
    assert [text[part.start : part.end] for part in parts][:2] == [
        " ".join(sentences[:2]),
        " ".join(sentences[1:3]),
    ]


def test_a_text_that_fits_is_one_chunk(tiny: tercet.BiEncoder) -> None:
    ((part,),) = tiny.chunks(["  the cat sat on the mat.  "], ChunkConfig())
    assert (part.start, part.end) == (0, 27)


def test_the_default_size_is_what_the_model_reads(tiny: tercet.BiEncoder) -> None:
    long = "the cat sat on the mat. " * 40
    (parts,) = tiny.chunks([long], ChunkConfig())
    chunks = [long[part.start : part.end] for part in parts]
    assert len(chunks) > 1
    assert not tiny.truncated_tokens(chunks, "candidate").any()
    assert tiny.truncated_tokens([f"{chunks[0]} the cat sat on the mat."], "candidate").any()


def test_a_chunk_larger_than_the_model_reads_is_rejected(tiny: tercet.BiEncoder) -> None:
    room = tiny.tokenizer.room()
    with pytest.raises(
        InputError, match=rf"at most {room} tokens, which this model reads .*got a size of {room + 1}"
    ):
        tiny.chunks(["a text"], ChunkConfig(size=room + 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": 8, "overlap": 8}, "overlap must be smaller than size, got overlap 8 and size 8"),
        ({"overlap": -1}, "overlap must be a whole number of at least 0, got int -1"),
        ({"boundary": "lines"}, "boundary must be one of words, sentences, got 'lines'"),
    ],
)
def test_settings_that_cannot_work_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ChunkConfig(**settings)  # type: ignore[arg-type]
