"""A poly-encoder as a folder.

``tercet.json`` holds the settings, ``poly.safetensors`` the codes and learnt scales, ``context`` an encoder
with its tokenizer as a Hugging Face folder, and ``candidate``, where there are two towers, the other encoder.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tercet.config import PolyConfig
from tercet.errors import InputError, ModelError
from tercet.models.code_layer import CodeLayer
from tercet.models.encoder import Encoder, read_encoder, write_encoder
from tercet.models.manifest import check_architecture, read_manifest, reading_settings
from tercet.models.tokenizer import Tokenizer, fitting_tokenizer
from tercet.models.weights import read_weights, write_weights

WEIGHTS = "poly.safetensors"


class PolyParts(NamedTuple):
    """What a poly-encoder is assembled from."""

    tokenizer: Tokenizer
    context_encoder: Encoder
    candidate_encoder: Encoder
    code_layer: CodeLayer


def read_backbone(folder: Path, *, config: PolyConfig, max_tokens: int | None, seed: int) -> PolyParts:
    """The parts of an untrained poly-encoder over the encoder in ``folder``; two towers start equal."""
    encoders = [read_encoder(folder) for _ in range(config.towers)]
    tokenizer = fitting_tokenizer(folder, encoders[0], max_tokens=max_tokens)
    if config.codes > tokenizer.max_tokens:
        raise InputError(
            f"codes must be at most {tokenizer.max_tokens}, the tokens that are read, got {config.codes}"
        )
    layer = CodeLayer(config, width=encoders[0].width, seed=seed)
    return PolyParts(tokenizer, encoders[0], encoders[-1], layer)


def read_poly(folder: Path) -> PolyParts:
    """The parts of a poly-encoder that tercet wrote."""
    manifest = read_manifest(folder, "poly")
    if manifest is None:
        raise ModelError(
            f"{folder} has no tercet.json: it is no poly-encoder; make one over it with "
            f'"tercet new poly OUT --backbone {folder}"'
        )
    with reading_settings(folder):
        return _read_parts(folder, manifest)


def write_poly(parts: PolyParts, folder: Path) -> dict[str, Any]:
    """Fill a folder; gives what ``tercet.json`` should say."""
    config = parts.code_layer.config
    encoders = {"context": parts.context_encoder, "candidate": parts.candidate_encoder}
    for name, encoder in list(encoders.items())[: config.towers]:
        (folder / name).mkdir()
        write_encoder(encoder, folder / name)
    parts.tokenizer.pretrained.save_pretrained(folder / "context")
    write_weights(parts.code_layer, folder / WEIGHTS)
    limits = {"max_tokens": parts.tokenizer.max_tokens, "lowercase": parts.tokenizer.lowercase}
    return {"config": asdict(config), "tokenizer": limits}


def _read_parts(folder: Path, manifest: dict[str, Any]) -> PolyParts:
    config = PolyConfig(**manifest["config"])
    if config.towers == 1 and (folder / "candidate").exists():
        raise ModelError(f"{folder} has 1 tower by its settings, and a second in {folder / 'candidate'}")
    context = read_encoder(folder / "context", strict=True)
    candidate = context if config.towers == 1 else read_encoder(folder / "candidate", strict=True)
    for encoder in (context, candidate):
        check_architecture(folder, manifest, encoder.architecture)
    if candidate.width != context.width:
        raise ModelError(
            f"the towers of {folder} are {context.width} and {candidate.width} wide: they must be equal"
        )
    limits: dict[str, Any] = manifest["tokenizer"]
    tokenizer = fitting_tokenizer(
        folder / "context", context, max_tokens=limits["max_tokens"], lowercase=limits["lowercase"]
    )
    layer = CodeLayer(config, width=context.width)
    read_weights(layer, folder / WEIGHTS)
    return PolyParts(tokenizer, context, candidate, layer)
