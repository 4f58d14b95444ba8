"""Arrays compared with their ``config.json``: what OpenVINO would not notice."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.records import Floats

LAYER = re.compile(r"(?:^|\.)layers?\.(\d+)\.")
"""The number of a layer in the name of a weight."""

WORDS = re.compile(r"^embeddings\.(word|tok)_embeddings\.weight$")
"""The names of the vectors of the vocabulary."""


def check_arrays(folder: Path, settings: Mapping[str, Any], weights: Mapping[str, Floats]) -> None:
    """Raise if weights belong to layers, or to a vocabulary, that the settings do not describe."""
    layers = settings.get("num_hidden_layers", settings.get("n_layers"))
    for name, values in weights.items():
        layer = LAYER.search(name)
        if layer and isinstance(layers, int) and int(layer[1]) >= layers:
            raise ModelError(
                f"{folder} has weights of layers that its config.json does not have: {name}; correct the "
                f"number of layers there (now {layers}), or copy the model again"
            )
        if WORDS.match(name) and len(values) != settings.get("vocab_size"):
            raise ModelError(
                f"{name} in {folder} has {len(values):,} rows, and vocab_size in its config.json is "
                f"{settings.get('vocab_size')!r}: copy both files of the same model"
            )
