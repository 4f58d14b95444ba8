"""Packed attention: equal to attention text by text."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoConfig, AutoModel

from tercet.encoders import packing
from tercet.encoders.encoder import Encoder
from tercet.encoders.packing import (
    Run,
    equal_length_runs,
    filler_rows,
    packed_attention,
    position_ids,
    text_bounds,
)


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


def test_attention_is_scaled_by_the_root_of_the_head_width_unless_told_otherwise() -> None:
    query, key, value = torch.randn(3, 1, 2, 5, 4)
    attended, _ = packed_attention(nn.Module(), query, key, value, None, packing=equal_length_runs([5]))
    expected = scaled_dot_product_attention(query, key, value, scale=4**-0.5)
    torch.testing.assert_close(attended, expected.transpose(1, 2))


@pytest.mark.parametrize(
    ("rows", "filled"), [(1, 8), (8, 8), (64, 64), (65, 96), (512, 512), (513, 640), (2048, 2048)]
)
def test_rows_are_filled_up_to_multiples_of_8_then_32_then_128(rows: int, filled: int) -> None:
    assert rows + filler_rows(rows) == filled


@pytest.mark.parametrize("lengths", [[1] * 400, [200, 200]], ids=["one token", "long texts"])
def test_attention_dropout_zeroes_weights_and_scales_up_the_others(lengths: list[int]) -> None:
    """A text of one token has one weight, which is 1: with dropout 1/2 it becomes 0 or 2."""
    query, key = torch.randn(2, 1, 2, 400, 4)
    attended, _ = packed_attention(
        nn.Module(),
        query,
        key,
        torch.ones(1, 2, 400, 4),
        None,
        packing=equal_length_runs(lengths),
        dropout=0.5,
    )
    if lengths[0] == 1:
        assert set(attended.unique().tolist()) == {0.0, 2.0}
    assert float(attended.std()) > 0.01
    assert float(attended.mean()) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(
    ("architecture", "hidden", "attention"),
    [
        ("bert", ["hidden_dropout_prob"], "attention_probs_dropout_prob"),
        ("roberta", ["hidden_dropout_prob"], "attention_probs_dropout_prob"),
        ("electra", ["hidden_dropout_prob"], "attention_probs_dropout_prob"),
        ("distilbert", ["dropout"], "attention_dropout"),
        ("modernbert", ["embedding_dropout", "mlp_dropout"], "attention_dropout"),
    ],
)
def test_attention_dropout_is_applied_in_training_and_only_there(
    architecture: str, hidden: list[str], attention: str, tiny_folder: Callable[[str], Path]
) -> None:
    config = AutoConfig.from_pretrained(tiny_folder(architecture))
    config.update(dict.fromkeys(hidden, 0.0) | {attention: 0.5})  # all other dropout is off
    encoder = Encoder(AutoModel.from_config(config))
    ids = [[5, 6, 7, 8], [9, 10], [11, 12, 13, 14]]
    for training in (True, False):
        encoder.train(training)
        first, second = (encoder(ids).states for _ in range(2))
        assert torch.equal(first, second) != training


def test_the_bounds_of_texts_are_the_sums_of_their_lengths() -> None:
    bounds = text_bounds([3, 5, 2], torch.device("cpu"))
    assert (bounds.rows.tolist(), bounds.longest) == ([0, 3, 8, 10], 5)
