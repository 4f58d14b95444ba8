"""The folder of a bi-encoder, in the layout of sentence-transformers, so that both libraries read it.

One tower is in the folder itself: the transformer's files, and a ``modules.json`` that lists the modules
after it. Two towers are in subfolders behind a Router. ``tercet.json`` adds what that layout cannot express.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.files.structured import read_json_if_exists, write_json
from tercet.formats.bi_settings import ROUTES, bi_config, bi_modules, bi_routes, text_settings
from tercet.formats.hand_over import HandOver
from tercet.formats.manifest import check_architecture, read_manifest
from tercet.formats.module_list import NAMESPACE, POOLING_NAMES, Module, write_modules
from tercet.formats.modules import read_tower, write_tower
from tercet.formats.pair_classifier import read_classifier, write_classifier
from tercet.formats.tokenizer import tokenizer_for
from tercet.formats.transformer import read_encoder, write_encoder
from tercet.scorers.bi import BiParts
from tercet.scorers.tower import Tower, TruncateDimensions
from tercet.settings.models import BiConfig, PoolingConfig
from tercet.text.tokenizer import Tokenizer

LOADING = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("FOLDER")
model.similarity(model.encode_query(contexts), model.encode_document(candidates))"""
"""How sentence-transformers computes the scores of a folder."""


def new_bi(folder: Path, *, pooling: PoolingConfig, config: BiConfig, max_tokens: int | None) -> BiParts:
    """The parts of an untrained bi-encoder built on the encoder in ``folder``; two towers start equal."""
    towers = [Tower(read_encoder(folder), pooling) for _ in range(config.towers)]
    tokenizer = tokenizer_for(folder, towers[0].encoder, max_tokens=max_tokens)
    return BiParts(tokenizer, towers[0], towers[-1], config)


def read_bi(folder: Path) -> BiParts:
    """The parts of a bi-encoder of tercet or sentence-transformers, or built on a plain encoder."""
    manifest = read_manifest(folder, "bi")
    if not (folder / "modules.json").is_file():
        return new_bi(folder, pooling=PoolingConfig(), config=BiConfig(), max_tokens=None)
    modules = bi_modules(folder)
    settings = read_json_if_exists(folder / "config_sentence_transformers.json") | (manifest or {})
    strict = manifest is not None
    routes = bi_routes(modules[0].folder) if modules[0].kind == "Router" else None
    if routes is None:
        tower, tokenizer = _read_route(modules, strict=strict)
        other = tower
    else:
        tower, tokenizer = _read_route([*routes["context"], *modules[1:]], strict=strict)
        other, second = _read_route([*routes["candidate"], *modules[1:]], strict=strict)
        if tokenizer.identity != second.identity:
            raise ModelError(f"the two towers of {folder} have different tokenizers: not supported")
    check_architecture(folder, manifest, tower.encoder.architecture)
    if settings.get("truncate_dim"):
        for each in {tower, other}:
            each.layers.append(TruncateDimensions(int(settings["truncate_dim"])))
    config = bi_config(settings, folder, towers=1 if other is tower else 2)
    return BiParts(tokenizer, tower, other, config, read_classifier(folder, width=other.width))


def write_bi(parts: BiParts, folder: Path) -> dict[str, Any]:
    """Fill a folder that tercet and sentence-transformers read; return the settings for ``tercet.json``."""
    if parts.candidate_tower is parts.context_tower:
        entries = _write_route(parts.context_tower, parts.tokenizer, folder)
        entries[0] = (entries[0][0], "")
    else:
        entries = [(NAMESPACE + "Router", "")]
        _write_router(parts, folder)
    write_modules(entries, folder)
    _write_settings(parts, folder)
    write_classifier(parts.classifier, folder)
    return {"turn_separator": parts.config.turn_separator}


def hand_over(parts: BiParts) -> HandOver:
    """How sentence-transformers loads the folder."""
    own = [kind for kind in parts.context_tower.pooling.kinds if kind not in POOLING_NAMES.values()]
    if own:
        return HandOver(limit=f"the pooling {own[0]} is unknown there; use tercet.load")
    separator = parts.config.turn_separator
    return HandOver(code=LOADING, note=f"Join the turns of a context with {separator!r} first.")


def _read_route(modules: Sequence[Module], *, strict: bool) -> tuple[Tower, Tokenizer]:
    folder, settings = modules[0].folder, text_settings(modules)
    encoder = read_encoder(folder, strict=strict)
    tokenizer = tokenizer_for(
        folder,
        encoder,
        max_tokens=settings.get("max_seq_length"),
        lowercase=bool(settings.get("do_lower_case", False)),
    )
    return read_tower(encoder, modules[1:]), tokenizer


def _write_route(tower: Tower, tokenizer: Tokenizer, folder: Path) -> list[tuple[str, str]]:
    """Write one tower and return the type and the name of each of its modules."""
    write_encoder(tower.encoder, folder)
    tokenizer.pretrained.save_pretrained(folder)
    settings = {"max_seq_length": tokenizer.max_tokens, "do_lower_case": tokenizer.lowercase}
    write_json(folder / "sentence_bert_config.json", settings)
    return [(NAMESPACE + "Transformer", "0_Transformer"), *write_tower(tower, folder)]


def _write_router(parts: BiParts, folder: Path) -> None:
    types: dict[str, str] = {}
    structure: dict[str, list[str]] = {}
    towers = {"context": parts.context_tower, "candidate": parts.candidate_tower}
    for side, route in ROUTES.items():
        structure[route] = []
        first = folder / f"{route}_0_Transformer"
        first.mkdir()
        for kind, name in _write_route(towers[side], parts.tokenizer, first):
            module = f"{route}_{name}"
            if name != "0_Transformer":
                (first / name).rename(folder / module)
            types[module] = kind
            structure[route].append(module)
    parameters = {"default_route": None, "allow_empty_key": True}
    write_json(
        folder / "router_config.json", {"types": types, "structure": structure, "parameters": parameters}
    )


def _write_settings(parts: BiParts, folder: Path) -> None:
    config = parts.config
    theirs: dict[str, Any] = {
        "model_type": "SentenceTransformer",
        "prompts": {"query": config.context_prompt, "document": config.candidate_prompt},
        "default_prompt_name": None,
        "similarity_fn_name": config.similarity,
    }
    narrow = [layer.width for layer in parts.candidate_tower.layers if isinstance(layer, TruncateDimensions)]
    if narrow:
        theirs["truncate_dim"] = narrow[-1]
    write_json(folder / "config_sentence_transformers.json", theirs)
