"""A trained model as its quantized difference from the model it was trained from.

The folder contains ``tercet.json``, which names the base model, and ``delta.safetensors``: the quantized
difference of each matrix of a transformer, the difference of each vector in float32, and all weights that do
not belong to a transformer, such as codes or a head, as they are.
"""

from pathlib import Path
from typing import cast

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tercet.encoders.precision import pick_device
from tercet.errors import InputError, ModelError
from tercet.files.atomic import new_folder
from tercet.formats.calibration import read_calibration, write_calibration
from tercet.formats.from_spec import (
    make_base,
    make_scorer,
    outside_transformers,
    spec_from_manifest,
    spec_to_json,
)
from tercet.formats.hand_over import partial_folder, write_card
from tercet.formats.load_torch import loads_partial
from tercet.formats.manifest import BASE, DELTA, PARTIAL, read_manifest, reading, write_manifest
from tercet.formats.pair_classifier import classifier_of, restore_classifier, write_classifier
from tercet.formats.quantization import BITS, Bits, Quantized, can_quantize, dequantize, quantize
from tercet.formats.tensors import read_tensors
from tercet.formats.transformer import check_finite, check_tensors
from tercet.scorers.kinds import AnyScorer
from tercet.settings.models import ModelSpec, Precision

WEIGHTS = "delta.safetensors"
ADDED = "added"
SUFFIXES = (*Quantized._fields, ADDED)
"""What may follow the name of a weight: its quantized or its exact difference."""


def save_delta(scorer: AnyScorer, base: ModelSpec, path: Path, *, bits: Bits = 4) -> Path:
    """Write a model as its difference from ``base``; ``tercet.load`` reads the folder.

    Quantization is lossy: evaluate the model that ``tercet.load`` returns.
    """
    if bits not in BITS:
        raise InputError(f"bits must be one of {BITS}, got {bits!r}")
    scorer.check_float32()
    restored = make_scorer(base, device="cpu")
    check_comparable(scorer, restored)
    with new_folder(path) as folder:
        save_file(delta_weights(scorer, restored, bits), folder / WEIGHTS)
        _add(restored, read_tensors(folder / WEIGHTS), bits, path)
        settings = {DELTA: bits, BASE: spec_to_json(base)}
        write_manifest(folder, kind=scorer.kind, fingerprint=restored.fingerprint, settings=settings)
        write_calibration(scorer.calibration, folder)
        write_classifier(classifier_of(scorer), folder)
        write_card(folder, scorer.kind, partial_folder(PARTIAL[DELTA]))
    return path


@loads_partial(DELTA)
def load_delta(folder: Path, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The base model with the delta in a folder added."""
    manifest = read_manifest(folder) or {}
    base = spec_from_manifest(folder, manifest)
    with reading(folder):
        bits, wanted = manifest[DELTA], manifest["fingerprint"]
        if bits not in BITS:
            raise ValueError(f"{DELTA} must be one of {BITS}, got {bits!r}")
    scorer = make_base(base, folder, device="cpu")
    _add(scorer, read_tensors(folder / WEIGHTS), cast("Bits", int(bits)), folder)
    if scorer.fingerprint != wanted:
        raise ModelError(
            f"with the delta in {folder}, {base.source} becomes model {scorer.fingerprint} instead of "
            f"{wanted}: it is not the base model, or the file is damaged"
        )
    scorer.calibration = read_calibration(folder)
    restore_classifier(scorer, folder)
    scorer.set_precision(precision)
    return scorer.to(pick_device(device))


@torch.no_grad()
def delta_weights(scorer: nn.Module, base: nn.Module, bits: Bits) -> dict[str, Tensor]:
    """What must be added to ``base`` to obtain ``scorer``."""
    before = dict(base.named_parameters())
    outside = outside_transformers(before)
    found: dict[str, Tensor] = {}
    for name, weight in scorer.named_parameters():
        now = weight.detach().cpu()
        added = now - before[name]
        if name in outside:
            found[name] = now.contiguous()
        elif bool(added.any()) and can_quantize(added):
            packed = quantize(added, bits)._asdict()
            found |= {f"{name}.{part}": values for part, values in packed.items()}
        elif bool(added.any()):
            found[f"{name}.{ADDED}"] = added
    return found


def check_comparable(scorer: AnyScorer, base: AnyScorer) -> None:
    """Raise if two scorers differ in more than the values of their weights."""
    ours, theirs = (
        {name: list(weight.shape) for name, weight in each.named_parameters()} for each in (scorer, base)
    )
    if ours != theirs:
        raise InputError("the model and its base have different weights: was it trained from that base?")
    if scorer.fingerprint_inputs != base.fingerprint_inputs:
        different = [
            name
            for name, value in scorer.fingerprint_inputs.items()
            if value != base.fingerprint_inputs.get(name)
        ]
        raise InputError(f"the model and its base have different settings: {', '.join(different)}")


@torch.no_grad()
def _add(scorer: nn.Module, delta: dict[str, Tensor], bits: Bits, folder: Path) -> None:
    """Add what ``delta_weights`` returns to a scorer."""
    weights = dict(scorer.named_parameters())
    outside = outside_transformers(weights)
    whole = {name for name in delta if name.rpartition(".")[2] not in SUFFIXES}
    changed = {name.rpartition(".")[0] for name in delta.keys() - whole}
    check_tensors(folder, missing=outside - whole, extra=(whole - outside) | (changed - weights.keys()))
    try:
        for name in whole:
            weights[name].copy_(delta[name])
        for name in changed:
            if f"{name}.{ADDED}" in delta:
                weights[name].add_(delta[f"{name}.{ADDED}"])
            else:
                packed = Quantized(*(delta[f"{name}.{part}"] for part in Quantized._fields))
                weights[name].add_(dequantize(packed, bits))
    except (KeyError, RuntimeError, ValueError) as error:
        raise ModelError(f"the delta in {folder} does not fit its base model: {error}") from error
    check_finite(scorer, folder)
