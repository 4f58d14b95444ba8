import pytest
import torch

import tercet
from tercet.config import POOLING_KINDS, PoolingConfig
from tercet.models import pooling

STATES = torch.tensor([[[1.0, 8.0], [3.0, 2.0], [5.0, 5.0]], [[7.0, -1.0], [99.0, 99.0], [99.0, 99.0]]])
MASK = torch.tensor([[True, True, True], [True, False, False]])  # the second text has one token


def test_first_is_the_first_token() -> None:
    assert pooling.first(STATES, MASK).tolist() == [[1, 8], [7, -1]]


def test_last_is_the_last_token_that_counts() -> None:
    assert pooling.last(STATES, MASK).tolist() == [[5, 5], [7, -1]]


def test_mean_divides_by_the_tokens_that_count() -> None:
    assert pooling.mean(STATES, MASK).tolist() == [[(1 + 3 + 5) / 3, (8 + 2 + 5) / 3], [7, -1]]


def test_maximum_is_taken_dimension_by_dimension() -> None:
    assert pooling.maximum(STATES, MASK).tolist() == [[5, 8], [7, -1]]


def test_mean_first_stops_after_m_tokens() -> None:
    assert pooling.mean_first(STATES, MASK, tokens=2).tolist() == [[(1 + 3) / 2, (8 + 2) / 2], [7, -1]]


def test_mean_first_beyond_the_length_is_the_mean() -> None:
    assert torch.equal(pooling.mean_first(STATES, MASK, tokens=9), pooling.mean(STATES, MASK))


def test_mean_sqrt_divides_by_the_root_of_the_length() -> None:
    expected = torch.tensor([[9 / 3**0.5, 15 / 3**0.5], [7, -1]])
    torch.testing.assert_close(pooling.mean_sqrt(STATES, MASK), expected)


def test_weighted_mean_weighs_by_place() -> None:
    expected = torch.tensor([[(1 + 2 * 3 + 3 * 5) / 6, (8 + 2 * 2 + 3 * 5) / 6], [7, -1]])
    torch.testing.assert_close(pooling.weighted_mean(STATES, MASK), expected)


@pytest.mark.parametrize("kind", POOLING_KINDS)
def test_padding_never_counts(kind: str) -> None:
    config = PoolingConfig(kinds=(kind,), first_tokens=2)  # type: ignore[arg-type]
    disturbed = STATES.clone()
    disturbed[~MASK] = float("nan") if kind in ("first", "last", "max") else -1e6
    assert torch.equal(pooling.pool(STATES, MASK, config), pooling.pool(disturbed, MASK, config))


def test_several_kinds_stand_side_by_side() -> None:
    pooled = pooling.pool(STATES, MASK, PoolingConfig(kinds=("max", "first")))
    assert pooled.tolist() == [[5, 8, 1, 8], [7, -1, 7, -1]]


def test_pooling_of_half_precision_states_is_float32() -> None:
    assert pooling.pool(STATES.bfloat16(), MASK, PoolingConfig()).dtype == torch.float32


def test_a_prompt_is_left_out_unless_nothing_would_remain() -> None:
    assert pooling.without_prompt(MASK, 2).tolist() == [[False, False, True], [True, False, False]]


def test_an_unknown_pooling_is_named_with_the_choices() -> None:
    with pytest.raises(tercet.InputError, match="pooling must be one of first, mean, max"):
        PoolingConfig(kinds=("median",))  # type: ignore[arg-type]


def test_no_pooling_at_all_is_refused() -> None:
    with pytest.raises(tercet.InputError, match="at least one"):
        PoolingConfig(kinds=())


def test_mean_of_the_first_none_is_refused() -> None:
    with pytest.raises(tercet.InputError, match="first_tokens must be at least 1, got 0"):
        PoolingConfig(first_tokens=0)
