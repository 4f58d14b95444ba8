"""Folders that ``tercet export`` writes: what sets a precision, and the model or its packaged name."""

from pathlib import Path
from typing import NamedTuple

from tercet.errors import ModelError
from tercet.formats.export_cost import Cost
from tercet.formats.int8 import identity_of
from tercet.formats.manifest import EXPORT, read_manifest, write_manifest
from tercet.formats.sources import PACKAGED, stored_model
from tercet.settings.models import Precision, ScorerKind

MODEL = "model"
"""The folder of the exported model, unless it is a packaged one."""

CARD = """# An int8 {kind}-encoder for CPUs

`tercet.load("FOLDER")` opens it with the OpenVINO runtime. It is {base} with {share:.0%} of the weights of
its linear layers in int8; the others are in bf16, or in fp32 on a processor without bf16.

Compared with fp32, on {texts} texts that did not set the ranges:

| measure | value |
|---|---:|
| same {same} | {same_top:.3f} |
| {agreement}, mean | {mean:.4f} |
| {agreement}, smallest | {smallest:.4f} |
| speed-up in processor time, where it was exported | {speed_up:.2f}x |
"""


class Export(NamedTuple):
    """The model folder of an export, and its precision."""

    model: Path
    precision: Precision


def read_export(folder: Path) -> Export:
    """What an exported folder refers to."""
    stated = (read_manifest(folder) or {}).get(EXPORT)
    if not isinstance(stated, dict) or stated.get("precision") != "int8":
        raise ModelError(f"{folder} is an export that this tercet cannot read: export the model again")
    base = stated.get("model")
    if base == MODEL and (folder / MODEL).is_dir():
        return Export(folder / MODEL, "int8")
    if base not in PACKAGED:
        raise ModelError(
            f"{folder} has no folder {MODEL!r}: copy the export again, or export the model again"
        )
    return Export(stored_model(base, stored_in=folder), "int8")


def write_export(folder: Path, *, base: str, kind: ScorerKind, cost: Cost, share: float) -> None:
    """Write the manifest and the card of an export, whose other files exist."""
    model = folder / MODEL if base == MODEL else stored_model(base, stored_in=folder)
    write_manifest(
        folder,
        kind=kind,
        fingerprint=identity_of(model),
        settings={EXPORT: {"precision": "int8", "model": base}},
    )
    text = CARD.format(
        kind=kind,
        base="the model in the folder `model`" if base == MODEL else f"the packaged model `{base}`",
        share=share,
        texts=cost.texts,
        same="top 10 of 50 candidates" if kind == "cross" else "top 10 of all texts",
        same_top=cost.same_top,
        agreement="correlation of the scores of a text" if kind == "cross" else "cosine of two vectors",
        mean=cost.agreement[0],
        smallest=cost.agreement[1],
        speed_up=cost.speed_up,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
