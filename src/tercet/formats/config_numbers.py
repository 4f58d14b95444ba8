"""The numbers of ``config.json``, checked before anything of that size is created."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.settings.limits import current_limits, exceeds

KEYS = {
    "max_layers": re.compile(r"layer"),
    "max_width": re.compile(r"(hidden|intermediate|embedding)_size$|^(dim|hidden_dim|d_model|d_ff)$"),
    "max_labels": re.compile(r"^num_labels$"),
}
"""The limits of whole numbers in a config, and the keys that they apply to, in all architectures."""

POSITIVE = re.compile(r"heads$|^(hidden|intermediate|embedding|vocab)_size$|^(dim|hidden_dim)$")
"""The keys of numbers without which no model can compute."""


def check_config_numbers(folder: Path, config: dict[str, Any]) -> None:
    """Raise if ``config.json`` asks for more layers, widths or labels than allowed, or for no heads.

    transformers creates a list of all layers, and of all labels, when it reads the config.
    """
    limits = current_limits()
    for key, number in _numbers(config):
        if POSITIVE.search(key) and number < 1:
            raise ModelError(
                f"{key} in {folder / 'config.json'} must be at least 1, got {number}: copy the model again"
            )
        for limit, pattern in KEYS.items():
            if pattern.search(key) and number > getattr(limits, limit):
                raise ModelError(
                    f"{key} in {folder / 'config.json'} is {exceeds(limit, number)}; otherwise copy "
                    "the model again"
                )


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
