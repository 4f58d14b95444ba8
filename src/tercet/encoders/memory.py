"""Returning freed memory to the operating system."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def release_free_memory() -> None:
    """Return freed heap memory to the system, if the C library keeps it.

    Batches differ slightly in size, so the gaps that one leaves in the heap rarely fit the next. Without this
    call, a long stream of batches grows by hundreds of megabytes. It takes milliseconds.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """glibc's function; other C libraries have none and do not need it."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
