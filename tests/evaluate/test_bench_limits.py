"""The least time of work, from measured speeds."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tercet.evaluate.bench.limits import Limits, forward_seconds, match_seconds, measure_limits
from tercet.formats.transformer import read_encoder

LIMITS = Limits(bandwidth=1e9, matrix_rate=1e12)


def test_the_slower_of_reading_and_computing_is_the_limit() -> None:
    assert LIMITS.seconds(read=2e9, operations=1e12) == 2
    assert LIMITS.seconds(read=1e9, operations=3e12) == 3


def test_match_reads_each_candidate_once_and_computes_each_product_once() -> None:
    few = match_seconds(LIMITS, contexts=1, codes=1, candidates=1000, width=100, candidate_bytes=2)
    assert few == pytest.approx(1000 * 100 * 2 / 1e9)
    many = match_seconds(LIMITS, contexts=50, codes=360, candidates=1000, width=100)
    assert many == pytest.approx(2 * 50 * 360 * 1000 * 100 / 1e12)


def test_a_forward_pass_counts_its_linear_layers_and_attention(
    tiny_folder: Callable[[str], Path],
) -> None:
    transformer = read_encoder(tiny_folder("bert")).transformer
    layer = 4 * 16 * 16 + 2 * 16 * 32  # query, key, value, output, and two layers of twice the width
    pooler = 16 * 16 if transformer.pooler is not None else 0
    attention = 4 * 2 * 16 * (3**2 + 5**2)
    expected = (2 * (2 * layer + pooler) * 8 + attention) / 1e12
    slow_memory = LIMITS._replace(bandwidth=1e18)
    assert forward_seconds(slow_memory, transformer, [3, 5], width=16) == pytest.approx(expected)


def test_the_limits_of_this_machine_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tercet.evaluate.bench.limits.COPIED", {"cpu": 2**20})
    monkeypatch.setattr("tercet.evaluate.bench.limits.MATRIX", {"cpu": 64})
    assert all(rate > 1e6 for rate in measure_limits(torch.device("cpu")))
