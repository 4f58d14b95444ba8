"""Memory that is free but still held."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def release_free_memory() -> None:
    """Give free memory back to the system where the C library holds on to it.

    Batches differ a little in size, so the holes that one leaves in the heap rarely fit the next, and without
    this a long stream of batches grows by hundreds of megabytes that nobody uses. It takes milliseconds.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """glibc's own function; other C libraries have none and do not need it."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
