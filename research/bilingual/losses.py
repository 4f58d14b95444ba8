"""Loss functions. Logits of other right answers are masked out."""

import torch
from torch import Tensor
from torch.nn import functional

MASKED = -1e4


def cosine_distance(vectors: Tensor, targets: Tensor) -> Tensor:
    """Mean of 1 - cos; both are unit vectors ``[N, D]``."""
    return (1 - (vectors * targets).sum(dim=-1)).mean()


def in_batch_softmax(logits: Tensor, same: Tensor) -> Tensor:
    """Cross-entropy of ``logits [B, C]``, whose right column is that of the row.

    Args:
        same: ``[B, B]``, true where another row's candidate is right too.
    """
    same = same.clone().fill_diagonal_(False)
    masked = logits.masked_fill(functional.pad(same, (0, logits.shape[1] - len(logits))), MASKED)
    return functional.cross_entropy(masked, torch.arange(len(logits), device=logits.device))


def kl_divergence(logits: Tensor, teacher_logits: Tensor) -> Tensor:
    """KL(teacher || student) of the softmaxes over the last dimension."""
    target = teacher_logits.softmax(dim=-1)
    difference = target.clamp_min(1e-9).log() - logits.log_softmax(dim=-1)
    return (target * difference).sum(dim=-1).mean()


def cosent(logits: Tensor, scores: Tensor) -> Tensor:
    """CoSENT: log(1 + sum of exp(l_j - l_i) over all i, j with score i > score j)."""
    differences = logits[None] - logits[:, None]
    differences = differences.masked_fill(scores[:, None] <= scores[None], -1e9).flatten()
    return torch.logsumexp(torch.cat([differences.new_zeros(1), differences]), dim=0)
