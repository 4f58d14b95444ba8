"""Each loss against numbers worked out by hand."""

import math

import pytest
import torch
from torch import Tensor

import tercet
from tercet.training import losses


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_concatenations() -> None:
    left, right = rows([1.0, 5.0]), rows([3.0, 2.0])
    assert losses.concatenate(left, right, ("u", "v", "difference")).tolist() == [[1, 5, 3, 2, 2, 3]]
    assert losses.concatenate(left, right, ("difference", "product")).tolist() == [[2, 3, 3, 10]]
    assert losses.concatenate(left, right, ("u",)).tolist() == [[1, 5]]


def test_classification() -> None:
    logits = rows([math.log(1), math.log(3)], [math.log(1), math.log(1)])
    found = losses.classification(logits, torch.tensor([1, 0]))
    assert found.item() == pytest.approx((-math.log(3 / 4) - math.log(1 / 2)) / 2)


def test_regression() -> None:
    found = losses.regression(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 0.8]))
    assert found.item() == pytest.approx((0.5**2 + 0.2**2) / 2)


def test_binary() -> None:
    found = losses.binary(torch.tensor([math.log(3.0)]), torch.tensor([0.25]))  # sigmoid 3/4
    assert found.item() == pytest.approx(-0.25 * math.log(3 / 4) - 0.75 * math.log(1 / 4))


@pytest.mark.parametrize(
    ("distance", "near", "far"),
    [("euclidean", 5.0, 1.0), ("manhattan", 7.0, 1.0), ("cosine", 1.0, 1 - 1 / math.sqrt(2))],
)
def test_triplet(distance: str, near: float, far: float) -> None:
    anchor = rows([1.0, 0.0])
    answer = rows([4.0, 4.0]) if distance != "cosine" else rows([0.0, 4.0])
    negative = rows([1.0, 1.0])
    found = losses.triplet(anchor, answer, negative, margin=0.5, distance=distance)  # type: ignore[arg-type]
    assert found.item() == pytest.approx(near - far + 0.5)


def test_a_triplet_that_is_right_by_the_margin_costs_nothing() -> None:
    vectors = rows([0.0, 0.0]), rows([1.0, 0.0]), rows([3.0, 0.0])
    assert losses.triplet(*vectors, margin=1.0, distance="euclidean").item() == 0


def test_ranking() -> None:
    scores = rows([math.log(2), math.log(1), math.log(1)], [math.log(1), math.log(5), math.log(2)])
    found = losses.ranking(scores, torch.tensor([0, 1]))
    assert found.item() == pytest.approx((-math.log(2 / 4) - math.log(5 / 8)) / 2)


def test_a_barred_candidate_is_not_wrong() -> None:
    scores = rows([math.log(2), math.log(1), math.log(9)])
    found = losses.ranking(scores, torch.tensor([0]), torch.tensor([[False, False, True]]))
    assert found.item() == pytest.approx(-math.log(2 / 3))


def test_a_ranking_of_one_is_refused() -> None:
    with pytest.raises(tercet.InputError, match="at least two candidates: use a larger batch"):
        losses.ranking(rows([1.0]), torch.tensor([0]))


def test_margin_mse() -> None:
    found = losses.margin_mse(rows([3.0, 1.0, 0.0]), rows([9.0, 8.0, 5.0]))  # leads 2 and 3, wanted 1 and 4
    assert found.item() == pytest.approx(((2 - 1) ** 2 + (3 - 4) ** 2) / 2)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_distribution(temperature: float) -> None:
    scores = rows([temperature * math.log(1), temperature * math.log(3)])  # 1/4, 3/4
    teacher = rows([temperature * math.log(1), temperature * math.log(1)])  # 1/2, 1/2
    found = losses.distribution(scores, teacher, temperature=temperature)
    expected = 0.5 * (math.log(1 / 2) - math.log(1 / 4)) + 0.5 * (math.log(1 / 2) - math.log(3 / 4))
    assert found.item() == pytest.approx(expected * temperature**2)


def test_every_loss_has_a_gradient() -> None:
    left, right, wrong = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    labels = torch.tensor([0, 1, 2])
    for loss in (
        losses.classification(losses.concatenate(left, right, ("difference", "product")), labels),
        losses.regression(left[:, 0], right[:, 0]),
        losses.binary(left[:, 0], right[:, 0].sigmoid()),
        losses.triplet(left, right, wrong, margin=1.0, distance="euclidean"),
        losses.ranking(left @ right.T, labels),
        losses.margin_mse(left, right),
        losses.distribution(left, right, temperature=2.0),
    ):
        assert torch.autograd.grad(loss, left)[0].abs().max() > 0


def test_order_worked_out_by_hand() -> None:
    # of three rows with targets 0, 1, 1 only (0, 1) and (0, 2) are in an order; 1 and 2 are equal
    found = losses.order(torch.tensor([0.5, 2.0, 0.25]), torch.tensor([0.0, 1.0, 1.0]))
    assert float(found) == pytest.approx(math.log(1 + math.exp(0.5 - 2.0) + math.exp(0.5 - 0.25)))


def test_order_does_not_care_how_large_targets_are() -> None:
    scores = torch.randn(6)
    targets = torch.tensor([0.0, 0.1, 3.0, 4.0, 4.0, 5.0])
    assert torch.equal(losses.order(scores, targets), losses.order(scores, targets.exp()))


def test_equal_targets_have_no_order() -> None:
    assert float(losses.order(torch.randn(4), torch.ones(4))) == 0
