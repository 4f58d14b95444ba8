import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from tercet.runtime import packing
from tercet.runtime.packing import Run, packed_attention, positions_of, runs_of


def test_equal_lengths_side_by_side_are_one_run() -> None:
    assert runs_of([5, 5, 3, 5]) == [Run(0, 2, 5), Run(10, 1, 3), Run(13, 1, 5)]


def test_positions_start_anew_with_each_text() -> None:
    assert positions_of([3, 2]).tolist() == [0, 1, 2, 0, 1]
    assert positions_of([2, 1], first=2).tolist() == [2, 3, 2]


def test_no_text_sees_its_neighbour() -> None:
    query, key, value = torch.randn(3, 1, 2, 7, 4)
    attended, _ = packed_attention(nn.Module(), query, key, value, None, packing=runs_of([4, 3]))
    value[:, :, 4:] += 100.0
    again, _ = packed_attention(nn.Module(), query, key, value, None, packing=runs_of([4, 3]))
    torch.testing.assert_close(again[:, :4], attended[:, :4])
    assert not torch.allclose(again[:, 4:], attended[:, 4:])


@pytest.mark.parametrize("plain_up_to", [0, 128], ids=["fused", "plain"])
def test_packed_attention_is_attention_text_by_text(
    plain_up_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PLAIN_UP_TO", plain_up_to)
    query, key, value = torch.randn(3, 1, 2, 12, 4)
    lengths = [5, 5, 2]
    attended, _ = packed_attention(
        nn.Module(), query, key, value, None, packing=runs_of(lengths), scaling=0.3
    )
    start = 0
    for length in lengths:
        text = slice(start, start + length)
        expected = scaled_dot_product_attention(
            query[:, :, text], key[:, :, text], value[:, :, text], scale=0.3
        )
        torch.testing.assert_close(attended[:, text], expected.transpose(1, 2))
        start += length


def test_a_window_hides_far_tokens() -> None:
    query, key, value = torch.randn(3, 1, 1, 6, 4)
    runs = runs_of([6])
    before, _ = packed_attention(nn.Module(), query, key, value, None, packing=runs, sliding_window=3)
    value[:, :, 5] += 100.0
    after, _ = packed_attention(nn.Module(), query, key, value, None, packing=runs, sliding_window=3)
    changed = [not torch.allclose(before[0, place], after[0, place]) for place in range(6)]
    assert changed == [False, False, False, True, True, True]  # |place - 5| < 3
