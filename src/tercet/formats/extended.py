"""Folders of bi-encoders that contain only what their encoder adds to that of another model."""

from pathlib import Path

from safetensors.torch import save_file

from tercet.errors import InputError
from tercet.files.atomic import new_folder
from tercet.formats.bi import read_bi, write_bi
from tercet.formats.extension import extension_weights
from tercet.formats.hand_over import partial_folder, write_card
from tercet.formats.manifest import EXTENDS, write_manifest
from tercet.formats.sources import absolute_source, resolve_model
from tercet.formats.transformer import EXTENSION, read_encoder
from tercet.scorers.bi import BiEncoder
from tercet.scorers.persistence import Source

OF_THE_BASE = ("config.json", "model.safetensors")
"""Files that the base model has, and the folder does not need."""


def save_extension(scorer: BiEncoder, base: Source, path: Path) -> Path:
    """Write a bi-encoder with one tower as what it adds to ``base``: new tokens, and changes of its weights.

    ``tercet.load`` reads the folder, and other models can be built on it. Quantization is lossy: evaluate
    the model that ``tercet.load`` returns.
    """
    parts = scorer.parts()
    if parts.candidate_tower is not parts.context_tower:
        raise InputError("an extension has one tower, and this bi-encoder has two")
    encoder = parts.context_tower.encoder
    weights = extension_weights(encoder.transformer, read_encoder(resolve_model(base)).transformer)
    with new_folder(path) as folder:
        settings = {EXTENDS: absolute_source(base), **write_bi(parts, folder)}
        for name in OF_THE_BASE:
            (folder / name).unlink()
        save_file(weights, folder / EXTENSION)
        write_manifest(folder, kind=scorer.kind, fingerprint="", settings=settings)
        restored = BiEncoder(read_bi(folder))
        write_manifest(folder, kind=scorer.kind, fingerprint=restored.fingerprint, settings=settings)
        write_card(folder, scorer.kind, partial_folder("what an encoder adds to another"))
    return path
