"""Batches of the OpenVINO runtime: texts of similar length are padded together."""

import numpy as np
import pytest

from tercet.encoders.openvino.compiled import CALL_TOKENS, padded_inputs, padded_length, similar_lengths
from tercet.encoders.openvino.inputs import IDS, LENGTHS


def test_texts_of_very_different_lengths_are_not_padded_together() -> None:
    assert similar_lengths([200, 5, 198, 6]) == [[0, 2], [3, 1]]


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_padded_by_little_more_than_a_call_costs(seed: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 300, size=80).tolist()
    groups = similar_lengths(lengths)
    assert sorted(place for group in groups for place in group) == list(range(80))
    for group in groups:
        width = padded_length(max(lengths[place] for place in group))
        assert sum(width - lengths[place] for place in group[1:]) <= CALL_TOKENS


def test_padding_is_zero_and_lengths_are_those_of_the_texts() -> None:
    arrays = padded_inputs([[7, 8, 9], [5]], {})
    assert arrays[IDS].tolist() == [[7, 8, 9, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0]]
    assert arrays[LENGTHS].tolist() == [3, 1]
