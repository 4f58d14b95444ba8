"""A trained model as its difference from the one it began with, in a few megabytes.

A folder of differences holds ``tercet.json``, which says how the model began, and
``differences.safetensors``: of each matrix of a transformer what training added to it, in few bits, of each
vector the same in float32; and what is not part of a transformer, such as codes or a head, as it is.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tercet.calibration import read_calibration, write_calibration
from tercet.config import Precision
from tercet.errors import InputError, ModelError
from tercet.files import new_folder
from tercet.models.encoder import check_finite, check_tensors
from tercet.models.few_bits import BITS, Bits, FewBits, can_be_few, from_few_bits, to_few_bits
from tercet.models.load import AnyScorer
from tercet.models.manifest import DIFFERENCES, read_manifest, reading_settings, write_manifest
from tercet.models.start import Start, begun, make_scorer, outside_transformers, written_start

WEIGHTS = "differences.safetensors"
LEVELS, SCALES, ADDED = "levels", "scales", "added"


def save_differences(scorer: AnyScorer, start: Start, path: Path, *, bits: Bits = 4) -> Path:
    """Write a model as its difference from ``start``; ``tercet.load`` reads the folder.

    What few bits cannot say is lost: measure the model that is read.
    """
    if bits not in BITS:
        raise InputError(f"bits must be one of {BITS}, got {bits!r}")
    first = make_scorer(start, device="cpu")
    with new_folder(path) as folder:
        save_file(differences(scorer, first, bits), folder / WEIGHTS)
        settings = {DIFFERENCES: bits, **written_start(start, first.fingerprint)}
        _add(first, load_file(folder / WEIGHTS), bits, folder)
        write_manifest(folder, kind=scorer.kind, fingerprint=first.fingerprint, settings=settings)
        write_calibration(scorer.calibration, folder)
    return path


@torch.no_grad()
def differences(scorer: nn.Module, first: nn.Module, bits: Bits) -> dict[str, Tensor]:
    """What makes the second model the first one."""
    before = dict(first.named_parameters())
    outside = outside_transformers(before)
    found: dict[str, Tensor] = {}
    for name, weight in scorer.named_parameters():
        if name not in before or before[name].shape != weight.shape:
            raise InputError(f"the model is not over the one it is compared with: {name} differs in shape")
        now = weight.detach().cpu().to(torch.float32)
        if name in outside:
            found[name] = now.contiguous()
            continue
        added = now - before[name]
        if not bool(added.any()):
            continue
        if can_be_few(added):
            packed = to_few_bits(added, bits)
            found |= {f"{name}.{LEVELS}": packed.levels, f"{name}.{SCALES}": packed.scales}
        else:
            found[f"{name}.{ADDED}"] = added
    return found


def load_differences(folder: Path, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The scorer that a folder of differences makes of the model it began with."""
    manifest = read_manifest(folder) or {}
    with reading_settings(folder):
        bits: Bits = manifest[DIFFERENCES]
    scorer = begun(folder, manifest, device=device)
    try:
        found = load_file(folder / WEIGHTS)
    except Exception as error:  # a broken file fails here in many ways
        raise ModelError(f"{folder / WEIGHTS} cannot be read: {error}") from error
    _add(scorer, found, bits, folder)
    scorer.calibration = read_calibration(folder)
    scorer.set_precision(precision)
    return scorer


@torch.no_grad()
def _add(scorer: nn.Module, found: dict[str, Tensor], bits: Bits, folder: Path) -> None:
    here = dict(scorer.named_parameters())
    outside = outside_transformers(here)
    whole = {name for name in found if name.rpartition(".")[2] not in (LEVELS, SCALES, ADDED)}
    parts = {name.rpartition(".")[0] for name in found.keys() - whole}
    check_tensors(folder, missing=outside - whole, extra=(whole - outside) | (parts - here.keys()))
    try:
        for name in whole:
            here[name].copy_(found[name])
        for name in parts:
            if f"{name}.{ADDED}" in found:
                added = found[f"{name}.{ADDED}"]
            else:
                added = from_few_bits(FewBits(found[f"{name}.{LEVELS}"], found[f"{name}.{SCALES}"]), bits)
            here[name].add_(added.to(here[name].device))
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"the differences in {folder} do not fit their model: {error}") from error
    check_finite(scorer, folder)
