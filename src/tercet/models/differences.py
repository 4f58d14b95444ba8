"""A trained model as its difference from the one it began with, in a few megabytes.

A folder of differences holds ``tercet.json``, which says how the model began, and
``differences.safetensors``: of each matrix of a transformer what training added to it, in few bits, of each
vector the same in float32; and what is not part of a transformer, such as codes or a head, as it is.
"""

from pathlib import Path
from typing import cast

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
from tercet.models.start import Start, make_scorer, outside_transformers, read_start, written_start
from tercet.runtime.precision import pick_device

WEIGHTS = "differences.safetensors"
ADDED = "added"
PARTS = (*FewBits._fields, ADDED)
"""What may follow the name of a weight: its difference in few bits, or as it is."""


def save_differences(scorer: AnyScorer, start: Start, path: Path, *, bits: Bits = 4) -> Path:
    """Write a model as its difference from ``start``; ``tercet.load`` reads the folder.

    What few bits cannot say is lost: measure the model that is read.
    """
    if bits not in BITS:
        raise InputError(f"bits must be one of {BITS}, got {bits!r}")
    scorer.check_digits()
    read = make_scorer(start, device="cpu")
    check_alike(scorer, read)
    with new_folder(path) as folder:
        save_file(differences(scorer, read, bits), folder / WEIGHTS)
        _add(read, load_file(folder / WEIGHTS), bits, path)
        settings = {DIFFERENCES: bits, "start": written_start(start)}
        write_manifest(folder, kind=scorer.kind, fingerprint=read.fingerprint, settings=settings)
        write_calibration(scorer.calibration, folder)
    return path


def load_differences(folder: Path, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The scorer that a folder of differences makes of the model it began with."""
    manifest = read_manifest(folder) or {}
    start = read_start(folder, manifest)
    with reading_settings(folder):
        bits, wanted = manifest[DIFFERENCES], manifest["fingerprint"]
        if bits not in BITS:
            raise ValueError(f"{DIFFERENCES} must be one of {BITS}, got {bits!r}")
    scorer = make_scorer(start, device="cpu")
    try:
        found = load_file(folder / WEIGHTS)
    except Exception as error:  # a broken file fails here in many ways
        raise ModelError(f"{folder / WEIGHTS} cannot be read: {error}") from error
    _add(scorer, found, cast("Bits", int(bits)), folder)
    if scorer.fingerprint != wanted:
        raise ModelError(
            f"with the differences in {folder}, {start.source} becomes model {scorer.fingerprint} instead of "
            f"{wanted}: it is not the model they were taken from, or the file is broken"
        )
    scorer.calibration = read_calibration(folder)
    scorer.set_precision(precision)
    return scorer.to(pick_device(device))


@torch.no_grad()
def differences(scorer: nn.Module, first: nn.Module, bits: Bits) -> dict[str, Tensor]:
    """What has to be added to ``first`` to make it ``scorer``."""
    before = dict(first.named_parameters())
    outside = outside_transformers(before)
    found: dict[str, Tensor] = {}
    for name, weight in scorer.named_parameters():
        now = weight.detach().cpu()
        added = now - before[name]
        if name in outside:
            found[name] = now.contiguous()
        elif bool(added.any()) and can_be_few(added):
            packed = to_few_bits(added, bits)._asdict()
            found |= {f"{name}.{part}": values for part, values in packed.items()}
        elif bool(added.any()):
            found[f"{name}.{ADDED}"] = added
    return found


def check_alike(scorer: AnyScorer, other: AnyScorer) -> None:
    """Raise if two scorers differ in more than the values of their weights."""
    ours, theirs = (
        {name: list(weight.shape) for name, weight in each.named_parameters()} for each in (scorer, other)
    )
    if ours != theirs:
        raise InputError("the model has other weights than the one it is compared with: is it over it?")
    if scorer.facts != other.facts:
        different = [name for name in scorer.facts if scorer.facts[name] != other.facts.get(name)]
        raise InputError(
            f"the model has other settings than the one it is compared with: {', '.join(different)}"
        )


@torch.no_grad()
def _add(scorer: nn.Module, found: dict[str, Tensor], bits: Bits, folder: Path) -> None:
    """Put into a scorer what ``differences`` has found."""
    here = dict(scorer.named_parameters())
    outside = outside_transformers(here)
    kept = {name for name in found if name.rpartition(".")[2] not in PARTS}
    changed = {name.rpartition(".")[0] for name in found.keys() - kept}
    check_tensors(folder, missing=outside - kept, extra=(kept - outside) | (changed - here.keys()))
    try:
        for name in kept:
            here[name].copy_(found[name])
        for name in changed:
            if f"{name}.{ADDED}" in found:
                here[name].add_(found[f"{name}.{ADDED}"])
            else:
                packed = FewBits(*(found[f"{name}.{part}"] for part in FewBits._fields))
                here[name].add_(from_few_bits(packed, bits))
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"the differences in {folder} do not fit their model: {error}") from error
    check_finite(scorer, folder)
