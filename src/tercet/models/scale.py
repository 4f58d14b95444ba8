"""A positive number that sharpens an attention, fixed or learnt."""

import math

import torch
from torch import Tensor, nn


class Scale(nn.Module):
    """Learnt, it is kept as its logarithm: it stays positive, and a step changes it by a share of itself."""

    def __init__(self, value: float, *, learnable: bool) -> None:
        super().__init__()
        self.start = value
        self.log = nn.Parameter(torch.tensor(math.log(value))) if learnable else None

    def forward(self) -> float | Tensor:
        """The number now, with a gradient where it is learnt."""
        return self.start if self.log is None else self.log.exp()

    @property
    def value(self) -> float:
        """The number now."""
        return self.start if self.log is None else float(self.log.detach().exp())
