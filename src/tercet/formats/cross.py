"""The folder of a cross-encoder, in a layout of sentence-transformers.

With a native head it is a sequence classifier of transformers, which both libraries read. Linear and dense
heads are Pooling and Dense modules after the transformer. Only a comparison head, which neither library has,
is a file of our own, and sentence-transformers runs it through our ``PairModule``.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.files.structured import read_json_if_exists, write_json
from tercet.formats.cross_settings import ACTIVATION_CLASSES, cross_modules, foreign_config
from tercet.formats.hand_over import HandOver
from tercet.formats.head_kinds import head_kind
from tercet.formats.heads import HEADS
from tercet.formats.manifest import check_architecture, read_manifest
from tercet.formats.module_list import write_modules
from tercet.formats.tokenizer import tokenizer_for
from tercet.scorers.cross import CrossParts
from tercet.settings.models import CrossConfig

LOADING = """\
from sentence_transformers import CrossEncoder

CrossEncoder({arguments}).predict(list(zip(contexts, candidates)))"""
"""How sentence-transformers, from version 6, computes the scores of a folder."""

SEQUENCE_CLASSIFIER = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
}
"""How sentence-transformers runs a sequence classifier."""


def new_cross(folder: Path, *, config: CrossConfig, max_tokens: int | None, seed: int) -> CrossParts:
    """The parts of an untrained cross-encoder built on the encoder in ``folder``."""
    encoder, head = HEADS[config.head].new(folder, config, seed)
    tokenizer = tokenizer_for(folder, encoder, max_tokens=max_tokens)
    if encoder.segments > 1:
        tokenizer.use_segments()
    return CrossParts(tokenizer, encoder, head, config)


def read_cross(folder: Path) -> CrossParts:
    """The parts of a cross-encoder of tercet, sentence-transformers or transformers."""
    manifest = read_manifest(folder, "cross")
    modules = cross_modules(folder)
    settings = read_json_if_exists(folder / "sentence_bert_config.json")
    kind = head_kind(folder, modules, own=manifest is not None)
    encoder, head = HEADS[kind].read(folder, modules, manifest is not None)
    check_architecture(folder, manifest, encoder.architecture)
    config = foreign_config(folder, kind, head.linear.out_features)
    if manifest is not None:
        config = _own_config(manifest, config, folder)
    tokenizer = tokenizer_for(
        folder,
        encoder,
        max_tokens=settings.get("max_seq_length"),
        lowercase=bool(settings.get("do_lower_case", False)),
    )
    return CrossParts(tokenizer, encoder, head, config)


def write_cross(parts: CrossParts, folder: Path) -> dict[str, Any]:
    """Fill a folder and return the settings for ``tercet.json``."""
    tokenizer, config = parts.tokenizer, parts.config
    settings: dict[str, Any] = {"max_seq_length": tokenizer.max_tokens, "do_lower_case": tokenizer.lowercase}
    if config.head == "native":
        settings |= SEQUENCE_CLASSIFIER
    entries = HEADS[config.head].write(parts, folder)
    tokenizer.pretrained.save_pretrained(folder)
    write_json(folder / "sentence_bert_config.json", settings)
    write_modules(entries, folder)
    class_of = {ours: name for name, ours in ACTIVATION_CLASSES.items()}
    theirs: dict[str, Any] = {
        "model_type": "CrossEncoder",
        "activation_fn": class_of["identity" if config.head == "compare" else config.activation],
        "prompts": {},
        "default_prompt_name": None,
    }
    write_json(folder / "config_sentence_transformers.json", theirs)
    return {"config": asdict(config)}


def hand_over(parts: CrossParts) -> HandOver:
    """How sentence-transformers loads the folder."""
    config = parts.config
    arguments = '"FOLDER", trust_remote_code=True' if config.head == "compare" else '"FOLDER"'
    code = LOADING.format(arguments=arguments)
    notes = [f"Join the turns of a context with {config.turn_separator!r} first."]
    if config.head == "compare":
        notes.insert(0, "Its head is not part of sentence-transformers, which imports it from tercet.")
    elif config.symmetric:
        limit = (
            "predict scores one direction, and this model the mean of both: average predict of both orders"
        )
        return HandOver(code=code, limit=limit, note=" ".join(notes))
    return HandOver(code=code, note=" ".join(notes))


def _own_config(manifest: dict[str, Any], found: CrossConfig, folder: Path) -> CrossConfig:
    """The saved config, if it agrees with the files."""
    config = CrossConfig(**manifest["config"])
    for name in ("head", "num_labels"):
        saved, there = getattr(config, name), getattr(found, name)
        if saved != there:
            raise ModelError(f"{name} is {saved} in the settings of {folder}, and {there} in its weights")
    return config
