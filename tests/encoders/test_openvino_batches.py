"""Batches of the OpenVINO runtime: texts share rows of tokens, and none sees another."""

import numpy as np
import pytest

from tercet.encoders.openvino.inputs import IDS, LENGTHS, PLACES, SEGMENTS, STARTS, TEXTS, arrays
from tercet.encoders.openvino.rows import in_rows, similar_lengths


def test_texts_of_very_different_lengths_are_not_padded_together() -> None:
    assert similar_lengths([200, 5, 198, 60]) == [[0, 2, 3], [1]]


@pytest.mark.parametrize("seed", range(5))
def test_no_two_texts_overlap_in_the_rows(seed: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 300, size=80).tolist()
    rows = in_rows(lengths)
    taken = [
        start + place for start, length in zip(rows.starts, lengths, strict=True) for place in range(length)
    ]
    assert len(set(taken)) == sum(lengths)
    assert max(taken) < rows.number * rows.width
    for start, length in zip(rows.starts, lengths, strict=True):
        assert start // rows.width == (start + length - 1) // rows.width


@pytest.mark.parametrize("length", [5, 9, 11, 13, 17, 21, 30, 33, 47])
def test_rows_of_short_texts_have_little_padding(length: int) -> None:
    rows = in_rows([length] * (2048 // length))
    assert rows.number * rows.width <= 1.15 * 2048


def test_a_single_text_has_a_row_of_its_length_in_steps_of_eight() -> None:
    assert in_rows([13])[:2] == (1, 16)


def test_the_arrays_say_where_each_token_is() -> None:
    found = arrays([[7, 8, 9], [5]], {SEGMENTS: [[0, 1, 1], [0]]})
    assert found[IDS].tolist() == [[7, 8, 9, 5, 0, 0, 0, 0]]
    assert found[TEXTS].tolist() == [[0, 0, 0, 1, -1, -1, -1, -1]]
    assert found[PLACES].tolist() == [[0, 1, 2, 0, 0, 0, 0, 0]]
    assert found[SEGMENTS].tolist() == [[0, 1, 1, 0, 0, 0, 0, 0]]
    assert found[STARTS].tolist() == [0, 3]
    assert found[LENGTHS].tolist() == [3, 1]
