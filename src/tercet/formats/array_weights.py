"""The weights of model folders as numpy arrays, without torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from tercet.encoders.openvino.graphs import Transformer
from tercet.errors import ModelError, UnsupportedModelError
from tercet.files.structured import read_json
from tercet.formats.array_checks import check_arrays
from tercet.formats.config_numbers import check_config_numbers
from tercet.formats.manifest import EXTENDS, read_manifest
from tercet.formats.sources import stored_model
from tercet.formats.unpacking import BITS, Bits, unpacked
from tercet.records import Floats

PACKED = ("levels", "scales", "largest")
"""The parts of a quantized matrix, which follow its name."""

ADDED = "added"
"""Follows the name of a weight whose exact difference is stored."""

OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}
"""How old models name the weights of a layer normalization."""


def read_arrays(file: Path) -> dict[str, Any]:
    """The arrays of a safetensors file; numbers in half precision become float32."""
    try:
        arrays = load_file(file)
    except Exception as error:  # safetensors has exceptions of its own
        raise UnsupportedModelError(
            f'cannot read {file} without torch: {error}; use runtime="torch"'
        ) from error
    return {
        name: values.astype(np.float32) if values.dtype in (np.float16, np.float64) else values
        for name, values in arrays.items()
        if not name.endswith(".position_ids")  # a buffer of old models
    }


def read_array_transformer(folder: Path) -> Transformer:
    """The transformer in a folder, or its base model with the extension in the folder."""
    manifest = read_manifest(folder) or {}
    if EXTENDS in manifest:
        base = stored_model(manifest[EXTENDS], stored_in=folder)
        transformer = read_array_transformer(base)
        extension = read_arrays(folder / "extension.safetensors")
        return _extended(transformer, extension, folder)
    settings = read_json(folder / "config.json")
    check_config_numbers(folder, settings)
    weights = _own_names(_all_arrays(folder))
    check_finite_arrays(weights, folder)
    check_arrays(folder, settings, weights)
    return Transformer(settings, weights)


def add_delta(
    weights: Mapping[str, Floats], delta: Mapping[str, Any], prefix: str, bits: object, folder: Path
) -> dict[str, Floats]:
    """The weights with the part of a delta whose names start with ``prefix`` added."""
    if bits not in BITS:
        raise ModelError(f"the delta in {folder} must have one of {BITS} bits, got {bits!r}")
    own = {name.removeprefix(prefix): values for name, values in delta.items() if name.startswith(prefix)}
    changed = {}
    try:
        for name in {name.rpartition(".")[0] for name in own}:
            changed[name] = np.add(weights[name], _difference(own, name, bits))
    except (KeyError, ValueError) as error:
        raise ModelError(f"the delta in {folder} does not fit its base model: {error}") from error
    check_finite_arrays(changed, folder)  # the others were checked when they were read
    return {**weights, **changed}


def check_finite_arrays(weights: Mapping[str, Floats], folder: Path) -> None:
    """Raise if a weight is not a finite number, or so large that its square is not one.

    OpenVINO makes finite scores of such weights, which are wrong.
    """
    for name, values in weights.items():
        with np.errstate(all="ignore"):
            if not np.isfinite(values.ravel() @ values.ravel()):
                raise ModelError(
                    f"{name} in {folder} contains NaN, infinity or numbers whose squares are infinite: copy "
                    "the model again, or train it again"
                )


def _difference(own: Mapping[str, Any], name: str, bits: Bits) -> Floats:
    if f"{name}.{ADDED}" in own:
        added: Floats = own[f"{name}.{ADDED}"]
        return added
    return unpacked(*(own[f"{name}.{part}"] for part in PACKED), bits=bits)


def _extended(base: Transformer, extension: Mapping[str, Any], folder: Path) -> Transformer:
    """A transformer with new tokens and changed weights; ``formats.extension`` explains the file."""
    try:
        others = {name: values for name, values in extension.items() if not name.startswith("words.")}
        weights = add_delta(base.weights, others, "", 4, folder)
        table = "embeddings.word_embeddings.weight"
        weights[table] = _grown(base.weights[table], extension["words.levels"], extension["words.scales"])
        check_finite_arrays({table: weights[table]}, folder)
    except (KeyError, ValueError) as error:
        raise ModelError(f"the extension in {folder} does not fit its base model: {error}") from error
    return Transformer({**base.settings, "vocab_size": len(weights[table])}, weights)


def _grown(table: Floats, levels: Any, scales: Any) -> Floats:
    """The rows of a table, followed by those of new words; nothing as large is held meanwhile."""
    grown: Floats = np.empty((len(table) + len(levels), table.shape[1]), dtype=np.float32)
    grown[: len(table)] = table
    np.multiply(levels, scales.astype(np.float32), out=grown[len(table) :], dtype=np.float32)
    return grown


def _all_arrays(folder: Path) -> dict[str, Any]:
    """The weights in the safetensors file of a folder."""
    file = folder / "model.safetensors"
    if not file.is_file():
        raise UnsupportedModelError(
            f'{folder} has no model.safetensors: copy its files again, or use runtime="torch"'
        )
    return read_arrays(file)


def _own_names(arrays: Mapping[str, Any]) -> dict[str, Floats]:
    """The weights as the encoder alone names them; those of a head keep their names."""
    prefix = next((name.partition("embeddings.")[0] for name in arrays if "embeddings." in name), "")
    renamed = {}
    for name, values in arrays.items():
        for old, new in OLD_NAMES.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        renamed[name.removeprefix(prefix)] = values
    return renamed
