"""Tensors of all processes, so that the answers of the others are negatives too."""

import torch
from torch import Tensor, distributed
from torch.distributed.nn.functional import all_gather


def gathered(tensor: Tensor) -> Tensor:
    """The tensors of all processes, one after the other; gradients find their way back to each.

    Every process gives the same shape. The gradient that comes back is the sum over the processes, and their
    trainer takes the mean of all weights' gradients: together that of the mean loss over the joined batch.
    """
    if not _several():
        return tensor
    return torch.cat(list(all_gather(tensor.contiguous())))


def place_of_mine(count: int) -> int:
    """Where this process's rows begin among those of all, if each has ``count``."""
    return count * distributed.get_rank() if _several() else 0


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
