"""What happens beside the steps of a training: files, signals, progress."""

import json
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
from tercet.files import writing
from tercet.training.gather import any_process

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class MetricsFile(TrainerCallback):
    """Every number that is logged, as JSON Lines; a resumed training goes on where its checkpoint was."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Forget what was logged after the checkpoint."""
        if state.is_world_process_zero:
            with writing(self._path):
                self._path.write_text("".join(json.dumps(row) + "\n" for row in state.log_history))

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Write down the newest row."""
        if state.is_world_process_zero:
            with writing(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(state.log_history[-1]) + "\n")


class StopOnInterrupt(TrainerCallback):
    """Ctrl-C, or the signal by which clusters end jobs, stops a training after its step, with a checkpoint.

    A second one ends it at once. Where several processes train, one that was asked stops all.
    """

    def __init__(self, on_notice: Callable[[], None]) -> None:
        self._on_notice = on_notice
        self._asked = False
        self._stopped_at: int | None = None
        self._before: dict[int, Any] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Listen."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._notice) for number in SIGNALS}

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Ask for a checkpoint and an end."""
        self._asked = any_process(self._asked, args.device)
        if self._asked:
            control.should_save = control.should_training_stop = True
            self._stopped_at = state.global_step

    def finish(self) -> None:
        """Listen no more, and raise if the training was stopped."""
        self._stop_listening()
        if self._stopped_at is not None:
            raise InterruptedRunError(
                f"stopped at step {self._stopped_at}, which is written down: go on with --resume"
            )

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._stop_listening()
        self._on_notice()

    def _stop_listening(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}


class Progress(TrainerCallback):
    """Tells how far a training is: steps done, steps in all, and the newest numbers."""

    def __init__(self, tell: Callable[[int, int, dict[str, float]], None]) -> None:
        self._tell = tell

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Tell."""
        if state.is_world_process_zero:
            self._tell(state.global_step, state.max_steps, {})

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Tell, with numbers."""
        if state.is_world_process_zero:
            self._tell(state.global_step, state.max_steps, dict(logs or {}))


def tensorboard(folder: Path) -> TrainerCallback:
    """Writes what is logged for TensorBoard, beside the checkpoints."""
    require("tensorboard", extra="train", purpose="writing for TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    return TensorBoardCallback(SummaryWriter(str(folder / "tensorboard")))
