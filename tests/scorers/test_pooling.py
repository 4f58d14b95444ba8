"""Poolings, worked out by hand, and their settings."""

import pytest
import torch

from tercet.errors import InputError
from tercet.scorers import pooling
from tercet.settings.models import POOLING_KINDS, PoolingConfig

STATES = torch.tensor([[[1.0, 8.0], [3.0, 2.0], [5.0, 5.0]], [[7.0, -1.0], [99.0, 99.0], [99.0, 99.0]]])
MASK = torch.tensor([[True, True, True], [True, False, False]])  # the second text has one token


def test_first_is_the_first_token() -> None:
    assert pooling.first(STATES, MASK).tolist() == [[1, 8], [7, -1]]


def test_last_is_the_last_token_that_is_not_padding() -> None:
    assert pooling.last(STATES, MASK).tolist() == [[5, 5], [7, -1]]


def test_mean_divides_by_the_number_of_tokens_without_padding() -> None:
    assert pooling.mean(STATES, MASK).tolist() == [[(1 + 3 + 5) / 3, (8 + 2 + 5) / 3], [7, -1]]


def test_maximum_is_taken_in_each_dimension() -> None:
    assert pooling.maximum(STATES, MASK).tolist() == [[5, 8], [7, -1]]


def test_mean_first_averages_the_first_tokens() -> None:
    assert pooling.mean_first(STATES, MASK, tokens=2).tolist() == [[(1 + 3) / 2, (8 + 2) / 2], [7, -1]]


def test_mean_first_beyond_the_length_is_the_mean() -> None:
    assert torch.equal(pooling.mean_first(STATES, MASK, tokens=9), pooling.mean(STATES, MASK))


def test_mean_sqrt_divides_by_the_square_root_of_the_length() -> None:
    expected = torch.tensor([[9 / 3**0.5, 15 / 3**0.5], [7, -1]])
    torch.testing.assert_close(pooling.mean_sqrt(STATES, MASK), expected)


def test_weighted_mean_weights_by_position() -> None:
    expected = torch.tensor([[(1 + 2 * 3 + 3 * 5) / 6, (8 + 2 * 2 + 3 * 5) / 6], [7, -1]])
    torch.testing.assert_close(pooling.weighted_mean(STATES, MASK), expected)


@pytest.mark.parametrize("kind", POOLING_KINDS)
def test_padding_does_not_change_the_pooled_vector(kind: str) -> None:
    config = PoolingConfig(kinds=(kind,), first_tokens=2)  # type: ignore[arg-type]
    disturbed = STATES.clone()
    disturbed[~MASK] = float("nan") if kind in ("first", "last", "max") else -1e6
    assert torch.equal(pooling.pool(STATES, MASK, config), pooling.pool(disturbed, MASK, config))


def test_several_kinds_are_concatenated() -> None:
    pooled = pooling.pool(STATES, MASK, PoolingConfig(kinds=("max", "first")))
    assert pooled.tolist() == [[5, 8, 1, 8], [7, -1, 7, -1]]


def test_pooling_of_half_precision_states_is_float32() -> None:
    assert pooling.pool(STATES.bfloat16(), MASK, PoolingConfig()).dtype == torch.float32


def test_a_prompt_is_excluded_unless_nothing_would_remain() -> None:
    assert pooling.without_prompt(MASK, 2).tolist() == [[False, False, True], [True, False, False]]


def test_an_unknown_pooling_is_refused_with_the_choices() -> None:
    with pytest.raises(InputError, match="pooling must be one of first, mean, max"):
        PoolingConfig(kinds=("median",))  # type: ignore[arg-type]


def test_an_empty_list_of_poolings_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        PoolingConfig(kinds=())


def test_zero_first_tokens_are_refused() -> None:
    with pytest.raises(InputError, match="first_tokens must be at least 1, got 0"):
        PoolingConfig(first_tokens=0)
