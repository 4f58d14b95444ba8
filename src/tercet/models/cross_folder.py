"""A cross-encoder as a folder, in a layout of sentence-transformers.

With a native head it is a sequence classifier of transformers, which both libraries read. Other heads, which
transformers does not have, lie behind the transformer as Pooling and Dense modules. Only a comparing head,
which neither library has, is a file of our own.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from tercet.config import Activation, CrossConfig, HeadKind, PoolingConfig
from tercet.errors import ModelError
from tercet.files import read_json, read_json_if_there, read_json_list, write_json
from tercet.models.comparison import Comparison
from tercet.models.encoder import (
    Encoder,
    check_finite,
    check_tensors,
    read_encoder,
    read_transformer,
    write_encoder,
)
from tercet.models.head import Head, new_head
from tercet.models.manifest import check_architecture, read_manifest, reading_settings
from tercet.models.native_head import put_together, take_apart
from tercet.models.tokenizer import Tokenizer, fitting_tokenizer
from tercet.models.tower import Dense
from tercet.models.tower_modules import (
    NAMESPACE,
    Module,
    read_dense,
    read_pooling,
    write_dense,
    write_modules,
    write_pooling,
)
from tercet.models.weights import read_weights, write_weights

HEAD = "head.safetensors"

ACTIVATION_CLASSES: dict[str, Activation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.activation.Softmax": "softmax",
    "torch.nn.modules.activation.Tanh": "tanh",
}
"""What sentence-transformers calls them."""

LAYOUTS = {
    (),
    ("Transformer",),
    ("Transformer", "Pooling", "Dense"),
    ("Transformer", "Pooling", "Dense", "Dense"),
}
"""The modules of a cross-encoder: one that classifies by itself, or has a head that sentence-transformers can
build; of a comparing one it can read nothing."""

SEQUENCE_CLASSIFIER = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
}
"""How sentence-transformers runs a sequence classifier."""


class CrossParts(NamedTuple):
    """What a cross-encoder is assembled from."""

    tokenizer: Tokenizer
    encoder: Encoder
    head: Head | Comparison
    config: CrossConfig


def read_backbone(folder: Path, *, config: CrossConfig, max_tokens: int | None, seed: int) -> CrossParts:
    """The parts of an untrained cross-encoder over the encoder in ``folder``."""
    head: Head | Comparison
    if config.head == "native":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model, _ = read_transformer(folder, AutoModelForSequenceClassification, new_labels=config.outputs)
        encoder, head = take_apart(model, folder)
    else:
        encoder = read_encoder(folder)
        head = (
            Comparison(width=encoder.width, activation=config.activation)
            if config.head == "compare"
            else new_head(config, width=encoder.width, seed=seed)
        )
    tokenizer = fitting_tokenizer(folder, encoder, max_tokens=max_tokens)
    if encoder.segments > 1:
        tokenizer.use_segments()
    return CrossParts(tokenizer, encoder, head, config)


def read_cross(folder: Path) -> CrossParts:
    """The parts of a cross-encoder of tercet, sentence-transformers or transformers."""
    with reading_settings(folder):
        return _read_cross(folder)


def write_cross(parts: CrossParts, folder: Path) -> dict[str, Any]:
    """Fill a folder; gives what ``tercet.json`` should say."""
    tokenizer, config = parts.tokenizer, parts.config
    settings: dict[str, Any] = {"max_seq_length": tokenizer.max_tokens, "do_lower_case": tokenizer.lowercase}
    entries = [(NAMESPACE + "Transformer", "")]
    if isinstance(parts.head, Comparison):
        write_encoder(parts.encoder, folder)
        write_weights(parts.head, folder / HEAD)
        entries.clear()
    elif config.head == "native":
        _name_classes(parts)
        put_together(parts.encoder, parts.head, folder)
        settings |= SEQUENCE_CLASSIFIER
    else:
        write_encoder(parts.encoder, folder)
        entries += _write_head(parts.head, parts.encoder.width, folder)
    tokenizer.pretrained.save_pretrained(folder)
    write_json(folder / "sentence_bert_config.json", settings)
    write_modules(entries, folder)
    class_of = {ours: name for name, ours in ACTIVATION_CLASSES.items()}
    for_them: dict[str, Any] = {
        "model_type": "CrossEncoder",
        "activation_fn": class_of[config.activation],
        "prompts": {},
        "default_prompt_name": None,
    }
    write_json(folder / "config_sentence_transformers.json", for_them)
    return {"config": asdict(config)}


def _read_cross(folder: Path) -> CrossParts:
    manifest = read_manifest(folder, "cross")
    modules = _modules(folder)
    settings = read_json_if_there(folder / "sentence_bert_config.json")
    kind: HeadKind = "native"
    head: Head | Comparison
    if manifest is not None and (folder / HEAD).is_file():
        kind = "compare"
        encoder = read_encoder(folder, strict=True)
        head = Comparison(width=encoder.width)
        read_weights(head, folder / HEAD)
    elif len(modules) > 1:
        kind = "linear" if len(modules) == 3 else "dense"
        encoder = read_encoder(folder, strict=manifest is not None)
        head = _read_head(modules[1:], folder)
    else:
        encoder, head = _read_native(folder, strict=manifest is not None)
    check_architecture(folder, manifest, encoder.architecture)
    config = _config(kind, encoder, head, folder)
    if manifest is not None:
        config = _own_config(manifest, config, folder)
    tokenizer = fitting_tokenizer(
        folder,
        encoder,
        max_tokens=settings.get("max_seq_length"),
        lowercase=bool(settings.get("do_lower_case", False)),
    )
    return CrossParts(tokenizer, encoder, head, config)


def _modules(folder: Path) -> list[Module]:
    file = folder / "modules.json"
    if not file.is_file():
        return []
    modules = [Module.of(entry["type"], folder, entry["path"]) for entry in read_json_list(file)]
    kinds = [module.kind for module in modules]
    if tuple(kinds) not in LAYOUTS:
        raise ModelError(
            f"{folder} is made of {', '.join(kinds)}: a cross-encoder is a Transformer that classifies, "
            "or one with a Pooling and one or two Dense behind it"
        )
    return modules


def _read_native(folder: Path, *, strict: bool) -> tuple[Encoder, Head]:
    named: Sequence[str] = read_json(folder / "config.json").get("architectures") or ["nothing"]
    if not named[0].endswith("ForSequenceClassification"):
        raise ModelError(
            f"{folder} holds a {named[0]}, which does not score pairs: make a cross-encoder over it with "
            f'"tercet new cross OUT --backbone {folder}"'
        )
    model, report = read_transformer(folder, AutoModelForSequenceClassification)
    check_tensors(folder, missing=report.missing, extra=report.extra if strict else ())
    check_finite(model, folder)
    return take_apart(model, folder)


def _read_head(modules: Sequence[Module], folder: Path) -> Head:
    pooling = read_pooling(modules[0].folder)
    layers = [read_dense(module.folder) for module in modules[1:]]
    if pooling.kinds not in (("first",), ("mean",)) or any(layer.residual is not None for layer in layers):
        raise ModelError(
            f"{folder} has a head that tercet cannot read: it pools by first or mean, and has no residuals"
        )
    if not isinstance(layers[-1].activation, nn.Identity):
        raise ModelError(f"{folder} has an activation in its last Dense: it belongs into activation_fn")
    averages = pooling.kinds == ("mean",)
    if len(layers) == 1:
        return Head(layers[0].linear, averages=averages)
    return Head(
        layers[1].linear,
        dense=layers[0].linear,
        activation=layers[0].activation,
        drops_first=True,
        averages=averages,
    )


def _write_head(head: Head, width: int, folder: Path) -> list[tuple[str, str]]:
    pooling = PoolingConfig(kinds=("mean" if head.averages else "first",))
    entries = [(write_pooling(pooling, width, folder / "1_Pooling"), "1_Pooling")]
    layers = [Dense(head.linear, nn.Identity())]
    if head.dense is not None:
        layers.insert(0, Dense(head.dense, head.activation or nn.Identity()))
    for place, layer in enumerate(layers, start=2):
        name = f"{place}_Dense"
        (folder / name).mkdir()
        write_dense(layer, folder / name, output="scores" if layer is layers[-1] else "sentence_embedding")
        entries.append((NAMESPACE + "Dense", name))
    return entries


def _own_config(manifest: dict[str, Any], found: CrossConfig, folder: Path) -> CrossConfig:
    """What our folder says, if that is what was found in it."""
    config = CrossConfig(**manifest["config"])
    for name in ("head", "outputs"):
        said, is_there = getattr(config, name), getattr(found, name)
        if said != is_there:
            raise ModelError(f"{name} is {said} by the settings of {folder}, and {is_there} by its weights")
    return config


def _config(kind: HeadKind, encoder: Encoder, head: Head | Comparison, folder: Path) -> CrossConfig:
    """What a folder says without our settings."""
    outputs = head.linear.out_features
    labels = tuple((encoder.transformer.config.id2label or {}).values())
    named = len(labels) == outputs > 1 and not all(label.startswith("LABEL_") for label in labels)
    return CrossConfig(
        head=kind,
        outputs=outputs,
        activation=_activation(folder, outputs),
        labels=labels if named else (),
    )


def _activation(folder: Path, outputs: int) -> Activation:
    """As sentence-transformers finds it, in the places of its several versions."""
    theirs = read_json_if_there(folder / "config_sentence_transformers.json")
    if theirs.get("default_prompt_name"):
        raise ModelError(f"{folder} puts a prompt before every pair, which no cross-encoder of tercet does")
    config = read_json(folder / "config.json")
    named = (
        theirs.get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
    )
    if named is None:
        return "sigmoid" if outputs == 1 else "identity"
    known = {name.rsplit(".", maxsplit=1)[-1]: ours for name, ours in ACTIVATION_CLASSES.items()}
    short = str(named).rsplit(".", maxsplit=1)[-1]
    if not str(named).startswith("torch.nn.") or short not in known:
        raise ModelError(f"{folder} uses the activation {named}; tercet knows {', '.join(known)}")
    return known[short]


def _name_classes(parts: CrossParts) -> None:
    config = parts.encoder.transformer.config
    labels = parts.config.labels or [f"LABEL_{place}" for place in range(parts.config.outputs)]
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: place for place, label in enumerate(labels)}
