"""The folder of a cross-encoder, in a layout of sentence-transformers.

With a native head it is a sequence classifier of transformers, which both libraries read. Linear and dense
heads are Pooling and Dense modules after the transformer. Only a comparison head, which neither library has,
is a file of our own, and sentence-transformers runs it through our ``PairModule``.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.files.structured import read_json, read_json_if_exists, read_json_list, write_json
from tercet.formats.hand_over import HandOver
from tercet.formats.heads import HEADS, CrossHead, head_kind
from tercet.formats.manifest import check_architecture, read_manifest
from tercet.formats.modules import Module, write_modules
from tercet.formats.tokenizer import tokenizer_for
from tercet.scorers.cross import CrossParts
from tercet.settings.models import Activation, CrossConfig, HeadKind

ACTIVATION_CLASSES: dict[str, Activation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.activation.Softmax": "softmax",
    "torch.nn.modules.activation.Tanh": "tanh",
}
"""The activations by their names in sentence-transformers."""

LAYOUTS = {
    (),
    ("PairModule",),
    ("Transformer",),
    ("Transformer", "Pooling", "Dense"),
    ("Transformer", "Pooling", "Dense", "Dense"),
}
"""The modules of a cross-encoder: none or ours with a comparison head, one if the transformer classifies."""

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
    modules = _modules(folder)
    settings = read_json_if_exists(folder / "sentence_bert_config.json")
    kind = head_kind(folder, modules, own=manifest is not None)
    encoder, head = HEADS[kind].read(folder, modules, manifest is not None)
    check_architecture(folder, manifest, encoder.architecture)
    config = _config(kind, encoder, head, folder)
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


def _modules(folder: Path) -> list[Module]:
    file = folder / "modules.json"
    if not file.is_file():
        return []
    modules = [Module.of(entry["type"], folder, entry["path"]) for entry in read_json_list(file)]
    kinds = [module.kind for module in modules]
    if tuple(kinds) not in LAYOUTS:
        raise ModelError(
            f"{folder} consists of {', '.join(kinds)}: a cross-encoder is a Transformer that classifies, "
            "or a Transformer, a Pooling, and one or two Dense modules"
        )
    return modules


def _own_config(manifest: dict[str, Any], found: CrossConfig, folder: Path) -> CrossConfig:
    """The saved config, if it agrees with the files."""
    config = CrossConfig(**manifest["config"])
    for name in ("head", "num_labels"):
        saved, there = getattr(config, name), getattr(found, name)
        if saved != there:
            raise ModelError(f"{name} is {saved} in the settings of {folder}, and {there} in its weights")
    return config


def _config(kind: HeadKind, encoder: Encoder, head: CrossHead, folder: Path) -> CrossConfig:
    """The config of a folder that another library wrote."""
    outputs = head.linear.out_features
    labels = tuple((encoder.transformer.config.id2label or {}).values())
    named = len(labels) == outputs > 1 and not all(label.startswith("LABEL_") for label in labels)
    return CrossConfig(
        head=kind,
        num_labels=outputs,
        activation=_activation(folder, outputs),
        labels=labels if named else (),
    )


def _activation(folder: Path, outputs: int) -> Activation:
    """The activation as sentence-transformers finds it, in the files of its several versions."""
    theirs = read_json_if_exists(folder / "config_sentence_transformers.json")
    if theirs.get("default_prompt_name"):
        raise ModelError(f"{folder} adds a prompt to every pair: not supported")
    config = read_json(folder / "config.json")
    name = (
        theirs.get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
    )
    if name is None:
        return "sigmoid" if outputs == 1 else "identity"
    known = {path.rsplit(".", maxsplit=1)[-1]: ours for path, ours in ACTIVATION_CLASSES.items()}
    short = str(name).rsplit(".", maxsplit=1)[-1]
    if not str(name).startswith("torch.nn.") or short not in known:
        raise ModelError(f"{folder} has the activation {name}; tercet supports {', '.join(known)}")
    return known[short]
