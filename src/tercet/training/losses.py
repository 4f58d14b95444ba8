"""One formula each: tensors in, one number out, the mean over the batch."""

import torch
from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cosine_similarity,
    cross_entropy,
    kl_div,
    mse_loss,
    pairwise_distance,
)

from tercet.errors import InputError
from tercet.training.settings import ConcatenationPart, Distance


def concatenate(left: Tensor, right: Tensor, parts: tuple[ConcatenationPart, ...]) -> Tensor:
    """``[B, parts * D]``: vectors ``u`` and ``v``, ``|u − v|`` and ``u ∗ v``, side by side as named.

    Sentence-BERT (Reimers & Gurevych, 2019), section 3.1 and table 6.
    """
    made = {"u": left, "v": right, "difference": (left - right).abs(), "product": left * right}
    return torch.cat([made[part] for part in parts], dim=-1)


def classification(logits: Tensor, labels: Tensor) -> Tensor:
    """``−log softmax(logits)[label]``

    Args:
        logits: ``[B, k]``
        labels: ``[B]``, whole numbers below k.
    """
    return cross_entropy(logits, labels)


def regression(scores: Tensor, targets: Tensor) -> Tensor:
    """``(score − target)²`` of scores and targets ``[B]`` on one scale, such as cosines (Sentence-BERT)."""
    return mse_loss(scores, targets)


def binary(logits: Tensor, targets: Tensor) -> Tensor:
    """``−t log σ(x) − (1 − t) log(1 − σ(x))`` of logits ``[B]`` and targets ``[B]`` from 0 to 1."""
    return binary_cross_entropy_with_logits(logits, targets)


def triplet(
    anchors: Tensor, answers: Tensor, negatives: Tensor, *, margin: float, distance: Distance
) -> Tensor:
    """``max(‖a − p‖ − ‖a − n‖ + margin, 0)`` over vectors ``[B, D]``."""
    near, far = (_apart(anchors, others, distance) for others in (answers, negatives))
    return (near - far + margin).relu().mean()


def ranking(scores: Tensor, answers: Tensor, barred: Tensor | None = None) -> Tensor:
    """``−log softmax(scores)[answer]``: the right candidate against all others of its row.

    With the answers of the other rows as candidates these are in-batch negatives; with a few candidates for
    each row, a cross-encoder's ranking softmax (Humeau et al., 2020).

    Args:
        scores: ``[B, C]``
        answers: ``[B]``, where the right candidate stands.
        barred: ``[B, C]``, true for candidates that must not count as wrong, such as a copy of the answer.
    """
    if scores.shape[1] < 2:
        raise InputError("a ranking needs at least two candidates: use a larger batch, or give negatives")
    if barred is not None:
        scores = scores.masked_fill(barred, float("-inf"))
    return cross_entropy(scores, answers)


def order(scores: Tensor, targets: Tensor) -> Tensor:
    """``log(1 + Σ exp(s_i − s_j))`` over the pairs of rows with ``t_i < t_j``: scores in the targets' order.

    Known as CoSENT (Su, 2022), where the scores are cosines times 20. Scores and targets are ``[B]``.
    """
    wrong = scores.unsqueeze(1) - scores.unsqueeze(0)  # [B, B]: by how much i is above j
    wrong = wrong.masked_fill(targets.unsqueeze(1) >= targets.unsqueeze(0), float("-inf"))
    return torch.cat([wrong.new_zeros(1), wrong.flatten()]).logsumexp(dim=0)


def margin_mse(scores: Tensor, teacher: Tensor) -> Tensor:
    """``((s₀ − s_j) − (t₀ − t_j))²``: by how much the first candidate leads, as the teacher says.

    Hofstätter et al. (2020). Scores of student and teacher are ``[B, C]``, the right candidate first.
    """
    return mse_loss(scores[:, :1] - scores[:, 1:], teacher[:, :1] - teacher[:, 1:])


def distribution(scores: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    """``T² Σ_c q_c (log q_c − log p_c)``, p and q the softmax of student's and teacher's scores over T.

    Hinton et al. (2015): the factor keeps gradients as large at any temperature. Scores are ``[B, C]``.
    """
    student, wanted = (values.div(temperature).log_softmax(dim=-1) for values in (scores, teacher))
    return kl_div(student, wanted, reduction="batchmean", log_target=True) * temperature**2


def _apart(left: Tensor, right: Tensor, distance: Distance) -> Tensor:
    """``[B]``: how far the vectors of each row are from each other."""
    if distance == "cosine":
        return 1 - cosine_similarity(left, right, dim=-1)
    return pairwise_distance(left, right, p=2 if distance == "euclidean" else 1, eps=0.0)
