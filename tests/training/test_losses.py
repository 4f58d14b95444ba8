"""Each loss equals a value worked out by hand."""

import math

import pytest
import torch
from torch import Tensor

from tercet.errors import InputError
from tercet.training import losses


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_classification() -> None:
    logits = rows([math.log(1), math.log(3)], [math.log(1), math.log(1)])
    found = losses.classification(logits, torch.tensor([1, 0]))
    assert found.item() == pytest.approx((-math.log(3 / 4) - math.log(1 / 2)) / 2)


def test_mean_squared_error() -> None:
    found = losses.mean_squared_error(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 0.8]))
    assert found.item() == pytest.approx((0.5**2 + 0.2**2) / 2)


def test_binary_cross_entropy() -> None:
    found = losses.binary_cross_entropy(torch.tensor([math.log(3.0)]), torch.tensor([0.25]))  # sigmoid 3/4
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


def test_a_triplet_beyond_the_margin_has_no_loss() -> None:
    vectors = rows([0.0, 0.0]), rows([1.0, 0.0]), rows([3.0, 0.0])
    assert losses.triplet(*vectors, margin=1.0, distance="euclidean").item() == 0


def test_listwise() -> None:
    scores = rows([math.log(2), math.log(1), math.log(1)], [math.log(1), math.log(5), math.log(2)])
    found = losses.listwise(scores, torch.tensor([0, 1]))
    assert found.item() == pytest.approx((-math.log(2 / 4) - math.log(5 / 8)) / 2)


def test_an_excluded_candidate_is_not_a_negative() -> None:
    scores = rows([math.log(2), math.log(1), math.log(9)])
    found = losses.listwise(scores, torch.tensor([0]), torch.tensor([[False, False, True]]))
    assert found.item() == pytest.approx(-math.log(2 / 3))


def test_listwise_needs_two_candidates() -> None:
    with pytest.raises(InputError, match="at least two candidates: use a larger batch"):
        losses.listwise(rows([1.0]), torch.tensor([0]))


def test_margin_mse() -> None:
    # the student's margins are 2 and 3, the teacher's 1 and 4
    found = losses.margin_mse(rows([3.0, 1.0, 0.0]), rows([9.0, 8.0, 5.0]))
    assert found.item() == pytest.approx(((2 - 1) ** 2 + (3 - 4) ** 2) / 2)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_kl_divergence(temperature: float) -> None:
    scores = rows([temperature * math.log(1), temperature * math.log(3)])  # 1/4, 3/4
    teacher = rows([temperature * math.log(1), temperature * math.log(1)])  # 1/2, 1/2
    found = losses.kl_divergence(scores, teacher, temperature=temperature)
    expected = 0.5 * (math.log(1 / 2) - math.log(1 / 4)) + 0.5 * (math.log(1 / 2) - math.log(3 / 4))
    assert found.item() == pytest.approx(expected * temperature**2)


def test_cosine_distance() -> None:
    # cosines of 0.6 and 0
    found = losses.cosine_distance(rows([3.0, 4.0], [0.0, 2.0]), rows([5.0, 0.0], [1.0, 0.0]))
    assert found.item() == pytest.approx(1 - (0.6 + 0.0) / 2)


def test_every_loss_has_a_gradient() -> None:
    torch.manual_seed(0)  # the margin of a triplet may hold already
    left, right, wrong = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    labels = torch.tensor([0, 1, 2])
    for loss in (
        losses.classification(left * right, labels),
        losses.mean_squared_error(left[:, 0], right[:, 0]),
        losses.binary_cross_entropy(left[:, 0], right[:, 0].sigmoid()),
        losses.triplet(left, right, wrong, margin=1.0, distance="euclidean"),
        losses.listwise(left @ right.T, labels),
        losses.margin_mse(left, right),
        losses.kl_divergence(left, right, temperature=2.0),
        losses.cosine_distance(left, right),
    ):
        assert torch.autograd.grad(loss, left)[0].abs().max() > 0


def test_cosent() -> None:
    # with targets 0, 1, 1, only the pairs (0, 1) and (0, 2) are ordered
    found = losses.cosent(torch.tensor([0.5, 2.0, 0.25]), torch.tensor([0.0, 1.0, 1.0]))
    assert float(found) == pytest.approx(math.log(1 + math.exp(0.5 - 2.0) + math.exp(0.5 - 0.25)))


def test_cosent_depends_only_on_the_order_of_targets() -> None:
    scores = torch.randn(6)
    targets = torch.tensor([0.0, 0.1, 3.0, 4.0, 4.0, 5.0])
    assert torch.equal(losses.cosent(scores, targets), losses.cosent(scores, targets.exp()))


def test_cosent_of_equal_targets_is_zero() -> None:
    assert float(losses.cosent(torch.randn(4), torch.ones(4))) == 0
