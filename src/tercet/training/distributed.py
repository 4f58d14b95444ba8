"""Training in several processes: gathered tensors, and who writes files."""

import os
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd import Function


def gather(tensor: Tensor) -> Tensor:
    """The rows of all processes, concatenated; gradients flow back to each process.

    Processes may have different numbers of rows. The gradient is summed over the processes, and the trainer
    averages the gradients of the weights: together, the gradient of the mean loss over the joined batch.
    """
    if not several_processes():
        return tensor
    counts = _counts(len(tensor), tensor.device)
    missing = tensor.new_zeros(max(counts) - len(tensor), *tensor.shape[1:])
    rows = _all_gather(torch.cat([tensor, missing]).contiguous())
    return torch.cat([part[:count] for part, count in zip(rows, counts, strict=True)])


class _AllGather(Function):
    """``all_gather`` whose backward pass sums the gradients of all processes."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        """The tensor of each process."""
        parts = [torch.empty_like(tensor) for _ in range(distributed.get_world_size())]
        distributed.all_gather(parts, tensor)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The gradient of this process's tensor, summed over the processes."""
        together = torch.stack(gradients)
        distributed.all_reduce(together)
        return together[distributed.get_rank()]


_all_gather: Callable[[Tensor], tuple[Tensor, ...]] = _AllGather.apply


def row_offset(count: int, device: torch.device) -> int:
    """The index of this process's first row among the rows of all processes."""
    if not several_processes():
        return 0
    return list(accumulate(_counts(count, device), initial=0))[distributed.get_rank()]


def _counts(mine: int, device: torch.device) -> list[int]:
    """The number of rows of each process."""
    counts = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(distributed.get_world_size())]
    distributed.all_gather(counts, torch.tensor([mine], device=device))
    return [int(count) for count in counts]


def is_first_process() -> bool:
    """Whether this process writes files and reports."""
    return int(os.environ.get("RANK", "0")) == 0


def process_count() -> int:
    """The number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_device() -> str | None:
    """The GPU of this process if several share a machine; None otherwise."""
    position = os.environ.get("LOCAL_RANK")
    return f"cuda:{position}" if position is not None and torch.cuda.is_available() else None


def cpu_threads(device: torch.device) -> int | None:
    """The number of threads, which decides the order of a CPU's sums; None on another device."""
    return torch.get_num_threads() if device.type == "cpu" else None


def wait_for_all() -> None:
    """Wait until every process has arrived here."""
    if _is_distributed():
        distributed.barrier()


def any_process(flag: bool, device: torch.device) -> bool:
    """Whether the flag is set in any process."""
    if not _is_distributed():
        return flag
    flags = torch.tensor([int(flag)], device=device)
    distributed.all_reduce(flags, op=distributed.ReduceOp.MAX)
    return bool(flags.item())


def broadcast_metrics(numbers: dict[str, float]) -> dict[str, float]:
    """The metrics of the first process, in all processes."""
    if not _is_distributed():
        return numbers
    shared = [numbers]
    distributed.broadcast_object_list(shared)
    return shared[0]


def several_processes() -> bool:
    """Whether gradients are computed in several processes; without gradients all see the same data."""
    return torch.is_grad_enabled() and _is_distributed()


def _is_distributed() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
