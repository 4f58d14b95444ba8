"""Whether a run learns: its training loss against that of a model with equal scores for everything."""

import warnings
from collections.abc import Sequence
from statistics import mean
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

AT_CHANCE = 0.9
"""A loss of at least this share of the loss at chance means that nothing was learnt."""

FIRST_EPOCH = 1.0

MIN_LOSSES = 4
"""Fewer logged losses say nothing about learning."""


def recent_loss(losses: Sequence[float]) -> float:
    """The mean of the later half of the losses."""
    return mean(losses[len(losses) // 2 :])


def is_at_chance(losses: Sequence[float], chance: float) -> bool:
    """Whether a model that scores everything equally would have about the same loss.

    Args:
        losses: training losses, oldest first.
        chance: the loss of equal scores, such as log C for a softmax over C candidates.
    """
    return len(losses) >= MIN_LOSSES and recent_loss(losses) >= AT_CHANCE * chance


class WarnAtChance(TrainerCallback):
    """Warns once, after the first epoch or at the end, if the training loss is still at chance."""

    def __init__(self, chance: float, *, advice: str) -> None:
        """``advice`` names the settings to change."""
        self._chance = chance
        self._advice = advice
        self._warned = False

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Check after the first epoch."""
        if state.epoch is not None and state.epoch <= FIRST_EPOCH:
            self._check(state)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Check at the end, unless the run was interrupted in its first epoch."""
        if state.epoch is not None and state.epoch >= FIRST_EPOCH:
            self._check(state)

    def _check(self, state: TrainerState) -> None:
        losses = [float(row["loss"]) for row in state.log_history if "loss" in row]
        if self._warned or not state.is_world_process_zero or not is_at_chance(losses, self._chance):
            return
        self._warned = True
        warnings.warn(
            f"after epoch {state.epoch:g} the training loss is {recent_loss(losses):.2f}, and guessing has "
            f"{self._chance:.2f}, so the model has learnt nothing yet: {self._advice}",
            stacklevel=2,
        )
