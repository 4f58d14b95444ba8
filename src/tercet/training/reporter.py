"""Callbacks through which a run reports progress."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Reporter:
    """Callbacks of a run; silent by default."""

    report: Callable[[str], None] = lambda _: None
    """Receives a sentence about the next step."""
    progress: Callable[[int, int, dict[str, float]], None] = lambda *_: None
    """Receives the steps done, all steps, and the newest metrics."""
    stoppable: bool = False
    """Whether Ctrl-C ends the training with a checkpoint."""
