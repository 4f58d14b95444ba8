"""Packed attention: equal to attention text by text."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from tercet.encoders import packing
from tercet.encoders.packing import Run, equal_length_runs, packed_attention, position_ids


def test_adjacent_texts_of_equal_length_are_one_run() -> None:
    assert equal_length_runs([5, 5, 3, 5]) == [Run(0, 2, 5), Run(10, 1, 3), Run(13, 1, 5)]


def test_positions_restart_with_each_text() -> None:
    assert position_ids([3, 2]).tolist() == [0, 1, 2, 0, 1]
    assert position_ids([2, 1], first=2).tolist() == [2, 3, 2]


def test_texts_do_not_attend_to_each_other() -> None:
    query, key, value = torch.randn(3, 1, 2, 7, 4)
    attended, _ = packed_attention(nn.Module(), query, key, value, None, packing=equal_length_runs([4, 3]))
    value[:, :, 4:] += 100.0
    changed, _ = packed_attention(nn.Module(), query, key, value, None, packing=equal_length_runs([4, 3]))
    torch.testing.assert_close(changed[:, :4], attended[:, :4])
    assert not torch.allclose(changed[:, 4:], attended[:, 4:])


@pytest.mark.parametrize("plain_up_to", [0, 128], ids=["fused", "plain"])
def test_packed_attention_equals_attention_text_by_text(
    plain_up_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PLAIN_UP_TO", plain_up_to)
    query, key, value = torch.randn(3, 1, 2, 12, 4)
    lengths = [5, 5, 2]
    attended, _ = packed_attention(
        nn.Module(), query, key, value, None, packing=equal_length_runs(lengths), scaling=0.3
    )
    start = 0
    for length in lengths:
        text = slice(start, start + length)
        expected = scaled_dot_product_attention(
            query[:, :, text], key[:, :, text], value[:, :, text], scale=0.3
        )
        torch.testing.assert_close(attended[:, text], expected.transpose(1, 2))
        start += length


def test_a_sliding_window_hides_distant_tokens() -> None:
    query, key, value = torch.randn(3, 1, 1, 6, 4)
    runs = equal_length_runs([6])
    before, _ = packed_attention(nn.Module(), query, key, value, None, packing=runs, sliding_window=3)
    value[:, :, 5] += 100.0
    after, _ = packed_attention(nn.Module(), query, key, value, None, packing=runs, sliding_window=3)
    changed = [not torch.allclose(before[0, position], after[0, position]) for position in range(6)]
    assert changed == [False, False, False, True, True, True]  # |position - 5| < 3
