"""Codes: which tokens are chosen, and how learnt codes attend over the tokens."""

import math

import pytest
import torch

from tercet.scorers.codes import attention_of_codes, chosen_tokens, new_codes, states_at

MASK = torch.tensor([[True, True, True, True, True], [True, True, True, False, False]])


@pytest.mark.parametrize(
    ("kind", "count", "long", "short"),
    [
        ("first", 1, [0], [0]),
        ("first", 4, [0, 1, 2, 3], [0, 1, 2]),
        ("first", 9, [0, 1, 2, 3, 4], [0, 1, 2]),
        ("last", 1, [4], [2]),
        ("last", 2, [3, 4], [1, 2]),
        ("last", 4, [1, 2, 3, 4], [0, 1, 2]),
        ("last_and_first", 1, [0, 4], [0, 2]),
        ("last_and_first", 2, [0, 3, 4], [0, 1, 2]),
        ("last_and_first", 3, [0, 2, 3, 4], [0, 1, 2]),
        ("last_and_first", 4, [0, 1, 2, 3, 4], [0, 1, 2]),
    ],
)
def test_chosen_tokens_worked_out_by_hand(kind: str, count: int, long: list[int], short: list[int]) -> None:
    tokens, present = chosen_tokens(MASK, kind, count)  # type: ignore[arg-type]
    assert [row[kept].tolist() for row, kept in zip(tokens, present, strict=True)] == [long, short]


def test_missing_codes_are_zeros() -> None:
    states = torch.arange(10.0).view(2, 5, 1) + 1
    vectors = states_at(states, *chosen_tokens(MASK, "first", 4))
    assert vectors.squeeze(-1).tolist() == [[1, 2, 3, 4], [6, 7, 8, 0]]


def test_the_attention_of_learnt_codes_worked_out_by_hand() -> None:
    codes = torch.tensor([[1.0, 0.0]])
    states = torch.tensor([[[0.0, 5.0], [math.log(3.0), 7.0]]])  # products 0 and log 3
    mask = torch.tensor([[True, True]])
    weights = attention_of_codes(codes, states, mask, scale=1.0)
    torch.testing.assert_close(weights, torch.tensor([[[1 / 4, 3 / 4]]]))
    weights = attention_of_codes(codes, states, mask, scale=2.0)  # 3 squared
    torch.testing.assert_close(weights, torch.tensor([[[1 / 10, 9 / 10]]]))


def test_padding_gets_no_attention_from_a_code() -> None:
    codes, states = new_codes(3, 4, seed=0), torch.full((2, 5, 4), 50.0)
    weights = attention_of_codes(codes, states, MASK, scale=10.0)
    assert (weights[1, :, 3:] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3))


def test_new_codes_are_random_directions_of_norm_one() -> None:
    codes = new_codes(360, 384, seed=0)
    assert abs(codes.mean().item()) < 1e-3
    assert codes.std().item() == pytest.approx(384**-0.5, rel=0.02)
    lengths = codes.norm(dim=1)
    assert lengths.mean().item() == pytest.approx(1, abs=0.02)
    cosines = (codes / lengths.unsqueeze(1)) @ (codes / lengths.unsqueeze(1)).T
    assert cosines.fill_diagonal_(0).abs().max() < 0.35  # no two are alike


def test_new_codes_depend_on_the_seed() -> None:
    assert torch.equal(new_codes(4, 8, seed=1), new_codes(4, 8, seed=1))
    assert not torch.equal(new_codes(4, 8, seed=1), new_codes(4, 8, seed=2))
