"""Tensors of all processes, so that the answers of the others are negatives too."""

import os
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd import Function


def gathered(tensor: Tensor) -> Tensor:
    """The rows of all processes, one after the other; gradients find their way back to each.

    Processes may have different numbers of rows. The gradient that comes back is the sum over the processes,
    and their trainer takes the mean of all weights' gradients: together that of the mean loss over the joined
    batch.
    """
    if not several():
        return tensor
    counts = _counts(len(tensor), tensor.device)
    missing = tensor.new_zeros(max(counts) - len(tensor), *tensor.shape[1:])
    rows = _all_gather(torch.cat([tensor, missing]).contiguous())
    return torch.cat([part[:count] for part, count in zip(rows, counts, strict=True)])


class _AllGather(Function):
    """The tensors of all processes; what each of them finds out about mine is added up on the way back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        """One tensor from each process."""
        parts = [torch.empty_like(tensor) for _ in range(distributed.get_world_size())]
        distributed.all_gather(parts, tensor)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The sum over the processes of the gradients of mine."""
        together = torch.stack(gradients)
        distributed.all_reduce(together)
        return together[distributed.get_rank()]


_all_gather: Callable[[Tensor], tuple[Tensor, ...]] = _AllGather.apply


def place_of_mine(count: int, device: torch.device) -> int:
    """Where this process's ``count`` rows begin among those of all."""
    if not several():
        return 0
    return list(accumulate(_counts(count, device), initial=0))[distributed.get_rank()]


def _counts(mine: int, device: torch.device) -> list[int]:
    """How many rows each process has."""
    counts = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(distributed.get_world_size())]
    distributed.all_gather(counts, torch.tensor([mine], device=device))
    return [int(count) for count in counts]


def is_first_process() -> bool:
    """Whether this process writes the files."""
    return int(os.environ.get("RANK", "0")) == 0


def count_of_processes() -> int:
    """How many train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_device() -> str | None:
    """The GPU of this process, where several share a machine; None leaves the choice."""
    place = os.environ.get("LOCAL_RANK")
    return f"cuda:{place}" if place is not None and torch.cuda.is_available() else None


def wait_for_all() -> None:
    """Go on when every process is here."""
    if _together():
        distributed.barrier()


def any_process(flag: bool, device: torch.device) -> bool:
    """Whether the flag is set in any of the processes."""
    if not _together():
        return flag
    flags = torch.tensor([int(flag)], device=device)
    distributed.all_reduce(flags, op=distributed.ReduceOp.MAX)
    return bool(flags.item())


def from_first(numbers: dict[str, float]) -> dict[str, float]:
    """What the first process has measured, for all to decide by."""
    if not _together():
        return numbers
    shared = [numbers]
    distributed.broadcast_object_list(shared)
    return shared[0]


def several() -> bool:
    """Whether there are other processes to learn with; where nothing is learnt, all look at the same data."""
    return torch.is_grad_enabled() and _together()


def _together() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
