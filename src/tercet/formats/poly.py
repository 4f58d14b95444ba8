"""The folder of a poly-encoder.

``tercet.json`` contains the settings, ``poly.safetensors`` the codes and learnt scales, ``context`` an
encoder with its tokenizer as a Hugging Face folder, and ``candidate``, with two towers, the other encoder.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tercet.errors import InputError, ModelError
from tercet.formats.hand_over import HandOver
from tercet.formats.manifest import check_architecture, read_manifest
from tercet.formats.tokenizer import tokenizer_for
from tercet.formats.transformer import read_encoder, write_encoder
from tercet.formats.weights import read_weights, write_weights
from tercet.scorers.codes import CodeLayer
from tercet.scorers.poly import PolyParts
from tercet.settings.models import PolyConfig
from tercet.text.tokenizer import Tokenizer

WEIGHTS = "poly.safetensors"


def new_poly(folder: Path, *, config: PolyConfig, max_tokens: int | None, seed: int) -> PolyParts:
    """The parts of an untrained poly-encoder built on the encoder in ``folder``; two towers start equal."""
    encoders = [read_encoder(folder) for _ in range(config.towers)]
    tokenizer = tokenizer_for(folder, encoders[0], max_tokens=max_tokens)
    _check_codes(config, tokenizer)
    layer = CodeLayer(config, width=encoders[0].width, seed=seed)
    return PolyParts(tokenizer, encoders[0], encoders[-1], layer)


def read_poly(folder: Path) -> PolyParts:
    """The parts of a poly-encoder that tercet wrote."""
    manifest = read_manifest(folder, "poly")
    if manifest is None:
        raise ModelError(
            f"{folder} has no tercet.json, so it is not a poly-encoder: create one with "
            f'"tercet new poly OUT --backbone {folder}"'
        )
    config = PolyConfig(**manifest["config"])
    if config.towers == 1 and (folder / "candidate").exists():
        raise ModelError(
            f"the settings of {folder} say 1 tower, but there is a second in {folder / 'candidate'}"
        )
    context = read_encoder(folder / "context", strict=True)
    candidate = context if config.towers == 1 else read_encoder(folder / "candidate", strict=True)
    for encoder in (context, candidate):
        check_architecture(folder, manifest, encoder.architecture)
    if candidate.width != context.width:
        raise ModelError(
            f"the towers of {folder} must have the same width, got {context.width} and {candidate.width}"
        )
    limits: dict[str, Any] = manifest["tokenizer"]
    tokenizer = tokenizer_for(
        folder / "context", context, max_tokens=limits["max_tokens"], lowercase=limits["lowercase"]
    )
    _check_codes(config, tokenizer)
    layer = CodeLayer(config, width=context.width)
    read_weights(layer, folder / WEIGHTS)
    return PolyParts(tokenizer, context, candidate, layer)


def _check_codes(config: PolyConfig, tokenizer: Tokenizer) -> None:
    if config.codes > tokenizer.max_tokens:
        raise InputError(
            f"codes must be at most {tokenizer.max_tokens}, the maximum number of tokens, got {config.codes}"
        )


def write_poly(parts: PolyParts, folder: Path) -> dict[str, Any]:
    """Fill a folder and return the settings for ``tercet.json``."""
    config = parts.code_layer.config
    encoders = {"context": parts.context_encoder, "candidate": parts.candidate_encoder}
    for name, encoder in list(encoders.items())[: config.towers]:
        (folder / name).mkdir()
        write_encoder(encoder, folder / name)
    parts.tokenizer.pretrained.save_pretrained(folder / "context")
    write_weights(parts.code_layer, folder / WEIGHTS)
    limits = {"max_tokens": parts.tokenizer.max_tokens, "lowercase": parts.tokenizer.lowercase}
    return {"config": asdict(config), "tokenizer": limits}


def hand_over(parts: PolyParts) -> HandOver:
    """Why sentence-transformers does not load the folder."""
    return HandOver(limit="poly-encoders are unknown there; use tercet.load")
