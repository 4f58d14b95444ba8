"""Trainer callbacks: the metrics file, interruption, progress."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations.integration_utils import TensorBoardCallback

from tercet.errors import InterruptedRunError
from tercet.extras import require
from tercet.files.atomic import writing
from tercet.files.structured import json_text, null_if_not_finite
from tercet.training.distributed import any_process

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class MetricsFile(TrainerCallback):
    """Logs metrics as JSON Lines; a resumed run continues from its checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Drop what was logged after the checkpoint."""
        if state.is_world_process_zero:
            with writing(self._path):
                self._path.write_text("".join(map(_line, state.log_history)))

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Append the newest row."""
        if state.is_world_process_zero:
            with writing(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(_line(state.log_history[-1]))


def _line(row: dict[str, float]) -> str:
    """A row of metrics as JSON; null for a gradient norm that overflowed, of which training recovers."""
    return json_text(null_if_not_finite(row)) + "\n"


class StopOnInterrupt(TrainerCallback):
    """Stops training with a checkpoint on Ctrl-C or SIGTERM, after the current step.

    A second signal ends it at once. With several processes, a signal to one stops all.
    """

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self._on_signal = on_signal
        self._requested = False
        self._stopped_at: int | None = None
        self._before: dict[int, Any] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Install the signal handlers."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Request a checkpoint and the end of training."""
        self._requested = any_process(self._requested, args.device)
        if self._requested:
            control.should_save = control.should_training_stop = True
            self._stopped_at = state.global_step

    def finish(self) -> None:
        """Restore the signal handlers, and raise if training was stopped."""
        self._restore_handlers()
        if self._stopped_at is not None:
            raise InterruptedRunError(
                f"stopped at step {self._stopped_at} with a checkpoint: continue with --resume"
            )

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._requested = True
        self._restore_handlers()
        self._on_signal()

    def _restore_handlers(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}


class Progress(TrainerCallback):
    """Reports steps done, all steps, and the newest metrics."""

    def __init__(self, progress: Callable[[int, int, dict[str, float]], None]) -> None:
        self._progress = progress

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Report a step."""
        if state.is_world_process_zero:
            self._progress(state.global_step, state.max_steps, {})

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Report metrics."""
        if state.is_world_process_zero:
            self._progress(state.global_step, state.max_steps, dict(logs or {}))


def tensorboard(folder: Path) -> TrainerCallback:
    """A callback that logs to TensorBoard, beside the checkpoints."""
    require("tensorboard", extra="train", purpose="logging to TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    return TensorBoardCallback(SummaryWriter(str(folder / "tensorboard")))
