"""The ranges of an int8 model on disk: two numbers per channel of each quantized input, in half precision."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from tercet.encoders.openvino.graphs import Transformer
from tercet.encoders.openvino.quantized import InputRange
from tercet.errors import ModelError, UnsupportedModelError
from tercet.formats.fingerprints import stored_fingerprint
from tercet.formats.manifest import INT8, contents_digest
from tercet.formats.sources import OWN_MODELS, names_of
from tercet.records import Floats
from tercet.scorers.compiled.bi import BiWeights
from tercet.scorers.compiled.cross import CrossWeights
from tercet.scorers.compiled.poly import PolyWeights

Ranges: TypeAlias = Mapping[str, Mapping[str, InputRange]]
"""By the part of a scorer (context, candidate, pair), then by the first linear layer that reads the input."""

Weights: TypeAlias = BiWeights | PolyWeights | CrossWeights

PACKAGED_RANGES = OWN_MODELS / "int8"
"""The ranges of the packaged models, a file each."""

IDENTITY = "model"
"""The metadata that says which model the ranges are for."""


def ranges_file(folder: Path) -> Path:
    """The file with the ranges of a model folder; a packaged model has it beside its weights."""
    names = names_of(folder)
    return PACKAGED_RANGES / f"{names[0]}.safetensors" if names else folder / INT8


def identity_of(folder: Path) -> str:
    """Identifies the files of a model folder without torch."""
    return stored_fingerprint(folder) or contents_digest(folder, {})


def write_ranges(file: Path, ranges: Ranges, model: Path) -> None:
    """Write what ``read_ranges`` reads for the model in the folder ``model``."""
    arrays = {
        f"{part}/{name}/{kind}": values.astype(np.float16)
        for part, by_name in ranges.items()
        for name, found in by_name.items()
        for kind, values in found._asdict().items()
    }
    save_file(arrays, file, metadata={IDENTITY: identity_of(model)})


def read_ranges(file: Path, model: Path) -> dict[str, dict[str, InputRange]]:
    """The ranges in a file, for the model in the folder ``model``."""
    if not file.is_file():
        raise UnsupportedModelError(
            f"int8 needs the ranges of the model's activations, and {model} has none: run "
            f'"tercet export {model} -o FOLDER --precision int8", then load FOLDER'
        )
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            arrays = {key: opened.get_tensor(key).astype(np.float32) for key in opened.keys()}  # noqa: SIM118
    except Exception as error:  # safetensors has exceptions of its own
        raise ModelError(f"cannot read {file}: {error}: export the model again") from error
    if metadata.get(IDENTITY) != identity_of(model):
        raise ModelError(f"{file} belongs to other weights than those in {model}: export the model again")
    return _checked(arrays, file)


def with_ranges(weights: Weights, ranges: Ranges, file: Path) -> Weights:
    """The weights of a scorer whose linear layers are in int8 where there are ranges."""

    def quantized(part: str, transformer: Transformer) -> Transformer:
        found = ranges.get(part)
        if found is None or any(not _fits(transformer, name, each) for name, each in found.items()):
            raise ModelError(f"the ranges in {file} do not fit the model: export it again")
        return transformer._replace(ranges=found)

    return with_transformers(weights, quantized)


def with_transformers(weights: Weights, change: Callable[[str, Transformer], Transformer]) -> Weights:
    """The weights of a scorer with each of its transformers changed."""
    if isinstance(weights, CrossWeights):
        return weights._replace(transformer=change("pair", weights.transformer))
    if isinstance(weights, PolyWeights):
        return weights._replace(
            context=change("context", weights.context), candidate=change("candidate", weights.candidate)
        )
    context = replace(weights.context, transformer=change("context", weights.context.transformer))
    if weights.candidate is weights.context:
        return weights._replace(context=context, candidate=context)
    other = change("candidate", weights.candidate.transformer)
    return weights._replace(context=context, candidate=replace(weights.candidate, transformer=other))


def _checked(arrays: Mapping[str, Floats], file: Path) -> dict[str, dict[str, InputRange]]:
    found: dict[str, dict[str, InputRange]] = {}
    for key in arrays:
        part, _, rest = key.partition("/")
        name, _, kind = rest.rpartition("/")
        scale, offset = (arrays.get(f"{part}/{name}/{each}") for each in InputRange._fields)
        if kind not in InputRange._fields or scale is None or offset is None or not _valid(scale, offset):
            raise ModelError(f"{key} in {file} is damaged: export the model again")
        found.setdefault(part, {})[name] = InputRange(scale, offset)
    return found


def _valid(scale: Floats, offset: Floats) -> bool:
    """Whether scale and offset are finite vectors of equal length, and the scale is positive."""
    if scale.ndim != 1 or scale.shape != offset.shape:
        return False
    return bool(np.isfinite(scale).all() and np.isfinite(offset).all() and (scale > 0).all())


def _fits(transformer: Transformer, name: str, found: InputRange) -> bool:
    matrix = transformer.weights.get(f"{name}.weight")
    return matrix is not None and matrix.ndim == 2 and matrix.shape[1] == len(found.scale)
