"""A poly-encoder as a folder.

``tercet.json`` holds the settings, ``poly.safetensors`` the codes and learnt scales, ``context`` and, with
two towers, ``candidate`` the transformers as Hugging Face folders; the tokenizer's files lie beside them.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tercet.config import PolyConfig
from tercet.errors import ModelError
from tercet.models.code_layer import CodeLayer
from tercet.models.encoder import Encoder, read_encoder, write_encoder
from tercet.models.manifest import read_manifest
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
    try:
        return _read_parts(folder, PolyConfig(**manifest["config"]), **manifest["tokenizer"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"a setting in the JSON files of {folder} is missing or of the wrong kind: {error}"
        ) from error


def write_poly(parts: PolyParts, folder: Path) -> dict[str, Any]:
    """Fill a folder; gives what ``tercet.json`` should say."""
    config = parts.code_layer.config
    encoders = {"context": parts.context_encoder, "candidate": parts.candidate_encoder}
    for name, encoder in list(encoders.items())[: config.towers]:
        (folder / name).mkdir()
        write_encoder(encoder, folder / name)
    parts.tokenizer.pretrained.save_pretrained(folder)
    write_weights(parts.code_layer, folder / WEIGHTS)
    limits = {"max_tokens": parts.tokenizer.max_tokens, "lowercase": parts.tokenizer.lowercase}
    return {"config": asdict(config), "tokenizer": limits}


def _read_parts(folder: Path, config: PolyConfig, *, max_tokens: int, lowercase: bool) -> PolyParts:
    context = read_encoder(folder / "context", strict=True)
    candidate = context if config.towers == 1 else read_encoder(folder / "candidate", strict=True)
    if candidate.width != context.width:
        raise ModelError(
            f"the towers of {folder} are {context.width} and {candidate.width} wide: they must be equal"
        )
    tokenizer = fitting_tokenizer(folder, context, max_tokens=max_tokens, lowercase=lowercase)
    layer = CodeLayer(config, width=context.width)
    read_weights(layer, folder / WEIGHTS)
    return PolyParts(tokenizer, context, candidate, layer)
