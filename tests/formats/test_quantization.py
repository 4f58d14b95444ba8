"""Quantization of matrices to two or four bits per weight."""

import pytest
import torch

from tercet.formats.quantization import BITS, Quantized, can_quantize, dequantize, quantize

GAUSSIAN = {2: 0.1188, 4: 0.01154}
"""The least mean squared error of 2^bits uniform levels for a normal distribution (Max, 1960)."""


def _normal(rows: int = 200, columns: int = 384, *, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.003


@pytest.mark.parametrize("bits", BITS)
def test_a_weight_takes_as_many_bits_as_requested(bits):
    packed = quantize(_normal(), bits)

    assert packed.levels.shape == (200, 384 * bits // 8)
    assert packed.levels.dtype == torch.uint8
    assert packed.scales.shape == (200, 6)
    assert packed.scales.dtype == torch.float16


@pytest.mark.parametrize("bits", BITS)
def test_the_error_of_normal_weights_is_close_to_the_optimum(bits):
    numbers = _normal()

    restored = dequantize(quantize(numbers, bits), bits)

    error = (restored - numbers).square().mean() / numbers.square().mean()
    assert error < 1.05 * GAUSSIAN[bits]  # each group of 64 has its own scale, which reduces the error


@pytest.mark.parametrize("bits", BITS)
def test_numbers_on_the_levels_are_restored_exactly(bits):
    levels = torch.arange(2**bits) - 2 ** (bits - 1) + 0.5
    numbers = levels.repeat(64 // len(levels)).repeat(3, 2) * torch.tensor([0.5, 0.25, 2.0])[:, None]

    assert torch.equal(dequantize(quantize(numbers, bits), bits), numbers)


@pytest.mark.parametrize("bits", BITS)
def test_large_numbers_keep_their_position_and_sign(bits):
    numbers = _normal(3, 128)
    large = numbers.abs() > 0.003

    restored = dequantize(quantize(numbers, bits), bits)

    assert torch.equal(restored.sign()[large], numbers.sign()[large])


@pytest.mark.parametrize("factor", [1e-30, 1e-9, 1e9, 1e30])
def test_the_relative_error_does_not_depend_on_the_magnitude(factor):
    numbers = _normal(8, 64)

    restored = dequantize(quantize(numbers * factor, 4), 4) / factor

    assert torch.allclose(restored, dequantize(quantize(numbers, 4), 4), rtol=1e-5)


@pytest.mark.parametrize("bits", BITS)
def test_the_error_of_a_group_is_at_most_its_norm(bits):
    """The hardest case: one number among zeros, which the levels cannot represent together."""
    numbers = torch.zeros(1, 128)
    numbers[0, 3] = 1.0

    error = (dequantize(quantize(numbers, bits), bits) - numbers).square().sum()

    assert error <= 1
    assert dequantize(quantize(numbers, bits), bits)[0, 64:].abs().max() == 0


def test_zeros_stay_zeros():
    packed = quantize(torch.zeros(3, 64), 4)

    assert torch.equal(dequantize(packed, 4), torch.zeros(3, 64))


def test_the_first_level_of_a_byte_is_in_its_lowest_bits():
    levels = torch.tensor([[0x10] * 32], dtype=torch.uint8)
    packed = Quantized(levels, torch.ones(1, 1, dtype=torch.float16), torch.tensor([2.0]))

    assert dequantize(packed, 4)[0, :4].tolist() == [-15, -13, -15, -13]


def test_only_matrices_whose_rows_are_whole_groups_can_be_quantized():
    assert can_quantize(torch.zeros(2, 128))
    assert not can_quantize(torch.zeros(2, 100))
    assert not can_quantize(torch.zeros(128))
    assert not can_quantize(torch.zeros(0, 64))
