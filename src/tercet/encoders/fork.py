"""Models in forked processes.

A fork copies a process without its threads, and torch would wait forever for them in its first parallel loop.
So a forked process computes with one thread, as the workers of torch's ``DataLoader`` do.
"""

import os

import torch


def keep_one_thread_after_fork() -> None:
    """Make models usable in processes that are forked from this one."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
