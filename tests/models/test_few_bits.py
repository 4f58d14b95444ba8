"""Matrices in few bits."""

import pytest
import torch

from tercet.models.few_bits import BITS, FewBits, can_be_few, from_few_bits, to_few_bits

GAUSSIAN = {2: 0.1188, 4: 0.01154}
"""The least mean squared error of so many even levels for numbers of a normal distribution (Max, 1960)."""


def _numbers(rows: int = 200, columns: int = 384, *, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.003


@pytest.mark.parametrize("bits", BITS)
def test_a_number_takes_the_bits_it_is_said_to(bits):
    packed = to_few_bits(_numbers(), bits)

    assert packed.levels.shape == (200, 384 * bits // 8)
    assert packed.levels.dtype == torch.uint8
    assert packed.scales.shape == (200, 6)
    assert packed.scales.dtype == torch.float16


@pytest.mark.parametrize("bits", BITS)
def test_normal_numbers_err_about_as_little_as_even_levels_can(bits):
    numbers = _numbers()

    read = from_few_bits(to_few_bits(numbers, bits), bits)

    error = (read - numbers).square().mean() / numbers.square().mean()
    assert error < 1.05 * GAUSSIAN[bits]  # each group of 64 has a scale of its own, which only helps


@pytest.mark.parametrize("bits", BITS)
def test_numbers_on_the_levels_come_back_exactly(bits):
    levels = torch.arange(2**bits) - 2 ** (bits - 1) + 0.5
    numbers = levels.repeat(64 // len(levels)).repeat(3, 2) * torch.tensor([0.5, 0.25, 2.0])[:, None]

    assert torch.equal(from_few_bits(to_few_bits(numbers, bits), bits), numbers)


@pytest.mark.parametrize("bits", BITS)
def test_the_place_of_a_number_is_kept(bits):
    numbers = _numbers(3, 128)
    large = numbers.abs() > 0.003

    read = from_few_bits(to_few_bits(numbers, bits), bits)

    assert torch.equal(read.sign()[large], numbers.sign()[large])


@pytest.mark.parametrize("size", [1e-30, 1e-9, 1e9, 1e30])
def test_how_small_or_large_numbers_are_does_not_matter(size):
    numbers = _numbers(8, 64)

    read = from_few_bits(to_few_bits(numbers * size, 4), 4) / size

    assert torch.allclose(read, from_few_bits(to_few_bits(numbers, 4), 4), rtol=1e-5)


@pytest.mark.parametrize("bits", BITS)
def test_a_group_never_errs_more_than_by_its_own_size(bits):
    """As one number among zeros would, which few bits cannot tell from the number."""
    numbers = torch.zeros(1, 128)
    numbers[0, 3] = 1.0

    error = (from_few_bits(to_few_bits(numbers, bits), bits) - numbers).square().sum()

    assert error <= 1
    assert from_few_bits(to_few_bits(numbers, bits), bits)[0, 64:].abs().max() == 0


def test_zeros_stay_zeros():
    packed = to_few_bits(torch.zeros(3, 64), 4)

    assert torch.equal(from_few_bits(packed, 4), torch.zeros(3, 64))


def test_bytes_are_read_from_the_lowest_bits():
    levels = torch.tensor([[0x10] * 32], dtype=torch.uint8)
    packed = FewBits(levels, torch.ones(1, 1, dtype=torch.float16), torch.tensor([2.0]))

    assert from_few_bits(packed, 4)[0, :4].tolist() == [-15, -13, -15, -13]


def test_only_rows_of_whole_groups_can_be_packed():
    assert can_be_few(torch.zeros(2, 128))
    assert not can_be_few(torch.zeros(2, 100))
    assert not can_be_few(torch.zeros(128))
    assert not can_be_few(torch.zeros(0, 64))
