"""What ``config.json`` asks for, checked before anything of that size is created."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from tercet.errors import ModelError
from tercet.settings.limits import current_limits, exceeds

KEYS = {
    "max_layers": re.compile(r"layer"),
    "max_width": re.compile(r"(hidden|intermediate|embedding)_size$|^(dim|hidden_dim|d_model|d_ff)$"),
    "max_labels": re.compile(r"^num_labels$"),
}
"""The limits of whole numbers in a config, and the keys that they apply to, in all architectures."""

NEW_WEIGHTS = 2**24
"""Weights that a model may have beyond those of its files, such as a new head."""

TENSORS_PER_LAYER = 64
"""More than a layer of any encoder has."""


def check_config_numbers(folder: Path, config: dict[str, Any]) -> None:
    """Raise if ``config.json`` asks for more layers, widths or labels than allowed.

    transformers creates a list of all layers, and of all labels, when it reads the config.
    """
    limits = current_limits()
    for key, number in _numbers(config):
        for limit, pattern in KEYS.items():
            if pattern.search(key) and number > getattr(limits, limit):
                raise ModelError(
                    f"{key} in {folder / 'config.json'} is {exceeds(limit, number)}; otherwise copy "
                    "the model again"
                )


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


def _numbers(config: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """All whole numbers of a config, each with its key."""
    if isinstance(config, dict):
        for name, value in config.items():
            yield from _numbers(value, name)
    elif isinstance(config, list):
        for value in config:
            yield from _numbers(value, key)
    elif isinstance(config, int):
        yield key, config
