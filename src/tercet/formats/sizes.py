"""The weights that ``config.json`` asks for, counted before any of them is created."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from tercet.errors import ModelError
from tercet.settings.limits import current_limits

NEW_WEIGHTS = 2**24
"""Weights that a model may have beyond those of its files, such as a new head."""

TENSORS_PER_LAYER = 64
"""More than a layer of any encoder has."""


def check_size(folder: Path, build: Callable[[], object]) -> None:
    """Raise if what ``config.json`` describes has many more weights than its files, without creating them.

    Args:
        build: creates it.
    """
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))  # a byte or more per weight
    allowed = stored + NEW_WEIGHTS
    most_tensors = TENSORS_PER_LAYER * current_limits().max_layers
    weights = tensors = 0

    def count(weight: nn.Parameter) -> None:
        nonlocal weights, tensors
        weights += weight.numel()
        tensors += 1
        if weights > allowed or tensors > most_tensors:
            raise ModelError(
                f"the settings in {folder / 'config.json'} need {weights:,} weights or more, and the "
                f"*.safetensors files have {stored:,} bytes: they do not belong together; copy the model "
                "again"
            )

    with _observing_weights(count), torch.random.fork_rng(devices=[]), torch.device("meta"):
        try:
            build()
        except RuntimeError as error:  # a negative width, for example
            raise ModelError(
                f"{folder / 'config.json'} does not describe a model ({error}): copy the model again"
            ) from None


@contextmanager
def _observing_weights(observer: Callable[[nn.Parameter], None]) -> Iterator[None]:
    """Meanwhile, call ``observer`` with each weight that is created in this thread."""
    thread = threading.get_ident()

    def observe(_module: nn.Module, _name: str, weight: nn.Parameter | None) -> None:
        if weight is not None and threading.get_ident() == thread:
            observer(weight)

    hook = register_module_parameter_registration_hook(observe)
    try:
        yield
    finally:
        hook.remove()
