"""File locks: one process at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tercet.files.atomic import check_parent, writing


@contextmanager
def exclusive(file: Path, on_busy: Callable[[], None]) -> Iterator[None]:
    """Hold the lock ``file`` for the length of the block.

    Args:
        on_busy: called if another process holds the lock. The block waits for it unless this raises.
    """
    lock = FileLock(file)
    with writing(file):
        check_parent(file)  # filelock would create it
        try:
            lock.acquire(timeout=0)
        except Timeout:
            on_busy()
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
