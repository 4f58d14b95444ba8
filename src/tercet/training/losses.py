"""Loss functions: tensors in, the mean over the batch out."""

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
from tercet.settings.training import Distance


def classification(logits: Tensor, labels: Tensor) -> Tensor:
    """``−log softmax(logits)[label]``

    Args:
        logits: ``[B, k]``
        labels: ``[B]``, whole numbers below k.
    """
    return cross_entropy(logits, labels)


def mean_squared_error(scores: Tensor, targets: Tensor) -> Tensor:
    """``(score − target)²`` of scores and targets ``[B]`` (in Sentence-BERT, scores are cosines)."""
    return mse_loss(scores, targets)


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """``−t log σ(x) − (1 − t) log(1 − σ(x))`` of logits ``[B]`` and targets ``[B]`` from 0 to 1."""
    return binary_cross_entropy_with_logits(logits, targets)


def triplet(
    anchors: Tensor, answers: Tensor, negatives: Tensor, *, margin: float, distance: Distance
) -> Tensor:
    """``max(‖a − p‖ − ‖a − n‖ + margin, 0)`` over vectors ``[B, D]``."""
    positive, negative = (_distances(anchors, others, distance) for others in (answers, negatives))
    return (positive - negative + margin).relu().mean()


def listwise(scores: Tensor, answers: Tensor, excluded: Tensor | None = None) -> Tensor:
    """``−log softmax(scores)[answer]``: the right candidate against the others of its row.

    With the answers of the other rows as candidates, these are in-batch negatives. With a few candidates per
    row, this is the cross-encoder's loss of Humeau et al. (2020).

    Args:
        scores: ``[B, C]``
        answers: ``[B]``, the column of the right candidate.
        excluded: ``[B, C]``, true for candidates that are not negatives, such as a copy of the answer.
    """
    if scores.shape[1] < 2:
        raise InputError("the loss needs at least two candidates: use a larger batch, or add negatives")
    if excluded is not None:
        scores = scores.masked_fill(excluded, float("-inf"))
    return cross_entropy(scores, answers)


def cosent(scores: Tensor, targets: Tensor) -> Tensor:
    """``log(1 + Σ exp(s_i − s_j))`` over the pairs of rows with ``t_i < t_j``.

    CoSENT (Su, 2022), where the scores are cosines times 20: scores in the order of the targets. Scores and
    targets are ``[B]``.
    """
    wrong = scores.unsqueeze(1) - scores.unsqueeze(0)  # [B, B]: s_i - s_j
    wrong = wrong.masked_fill(targets.unsqueeze(1) >= targets.unsqueeze(0), float("-inf"))
    return torch.cat([wrong.new_zeros(1), wrong.flatten()]).logsumexp(dim=0)


def margin_mse(scores: Tensor, teacher: Tensor) -> Tensor:
    """``((s₀ − s_j) − (t₀ − t_j))²``: margins of the first candidate equal to the teacher's.

    Hofstätter et al. (2020). Scores of student and teacher are ``[B, C]``, the right candidate first.
    """
    return mse_loss(scores[:, :1] - scores[:, 1:], teacher[:, :1] - teacher[:, 1:])


def kl_divergence(scores: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    """``T² Σ_c q_c (log q_c − log p_c)``, with p and q the softmax of the student's and teacher's scores / T.

    Hinton et al. (2015). The factor makes gradients independent of the temperature. Scores are ``[B, C]``.
    """
    student, wanted = (values.div(temperature).log_softmax(dim=-1) for values in (scores, teacher))
    return kl_div(student, wanted, reduction="batchmean", log_target=True) * temperature**2


def cosine_distance(vectors: Tensor, targets: Tensor) -> Tensor:
    """``1 − cos(u, v)`` of vectors and targets ``[B, D]``."""
    return 1 - cosine_similarity(vectors, targets, dim=-1).mean()


def _distances(left: Tensor, right: Tensor, distance: Distance) -> Tensor:
    """``[B]``: the distance of the two vectors of each row."""
    if distance == "cosine":
        return 1 - cosine_similarity(left, right, dim=-1)
    return pairwise_distance(left, right, p=2 if distance == "euclidean" else 1, eps=0.0)
