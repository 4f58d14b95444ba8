"""How the head of each kind is created, read and written.

A new head is an entry in ``HEADS`` and a name in ``settings.models.HeadKind``.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.files.structured import read_json
from tercet.formats.head_kinds import COMPARISON_WEIGHTS
from tercet.formats.module_list import NAMESPACE, Module, read_pooling
from tercet.formats.modules import read_dense, write_dense, write_pooling
from tercet.formats.native_head import join_head, split_head
from tercet.formats.transformer import (
    check_finite,
    check_tensors,
    read_encoder,
    read_transformer,
    write_encoder,
)
from tercet.formats.weights import read_weights, write_weights
from tercet.scorers.cross import CrossParts
from tercet.scorers.heads import ComparisonHead, Head, new_dense_head, new_linear_head
from tercet.scorers.tower import Dense
from tercet.settings.models import CrossConfig, HeadKind, PoolingConfig

CrossHead: TypeAlias = Head | ComparisonHead
Entries: TypeAlias = list[tuple[str, str]]
"""Types and subfolders of modules, as ``modules.json`` lists them."""

PAIR_MODULE = "tercet.formats.pair_module.PairModule"
"""Scores pairs inside sentence-transformers where it has no such head."""

TRANSFORMER = (NAMESPACE + "Transformer", "")


class HeadFormat(NamedTuple):
    """How a kind of head is created on a backbone, read from a folder, and written to one."""

    new: Callable[[Path, CrossConfig, int], tuple[Encoder, CrossHead]]
    read: Callable[[Path, Sequence[Module], bool], tuple[Encoder, CrossHead]]
    write: Callable[[CrossParts, Path], Entries]


def _new_native(folder: Path, config: CrossConfig, seed: int) -> tuple[Encoder, CrossHead]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, report = read_transformer(
            folder, AutoModelForSequenceClassification, new_labels=config.num_labels
        )
    check_tensors(folder, missing=_outside_head(report.missing, model))
    check_finite(model, folder)
    return split_head(model, folder)


def _outside_head(names: Iterable[str], model: PreTrainedModel) -> list[str]:
    """The weights that do not belong to a head; in some architectures, a pooler is a part of it."""
    prefix = f"{model.base_model_prefix}."
    return [
        name
        for name in names
        if name.startswith(prefix) and not name.removeprefix(prefix).startswith("pooler.")
    ]


def _read_native(folder: Path, modules: Sequence[Module], strict: bool) -> tuple[Encoder, CrossHead]:
    classes: Sequence[str] = read_json(folder / "config.json").get("architectures") or ["nothing"]
    if not classes[0].endswith("ForSequenceClassification"):
        raise ModelError(
            f"{folder} contains a {classes[0]}, which does not score pairs: create a cross-encoder on it "
            "with "
            f'"tercet new cross OUT --backbone {folder}"'
        )
    model, report = read_transformer(folder, AutoModelForSequenceClassification)
    check_tensors(folder, missing=report.missing, extra=report.extra if strict else ())
    check_finite(model, folder)
    return split_head(model, folder)


def _write_native(parts: CrossParts, folder: Path) -> Entries:
    config = parts.encoder.transformer.config
    labels = parts.config.labels or [f"LABEL_{number}" for number in range(parts.config.num_labels)]
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    join_head(parts.encoder, parts.head, folder)
    return [TRANSFORMER]


def _new_linear(folder: Path, config: CrossConfig, seed: int) -> tuple[Encoder, CrossHead]:
    encoder = read_encoder(folder)
    return encoder, new_linear_head(width=encoder.width, outputs=config.num_labels, seed=seed)


def _new_dense(folder: Path, config: CrossConfig, seed: int) -> tuple[Encoder, CrossHead]:
    encoder = read_encoder(folder)
    return encoder, new_dense_head(width=encoder.width, outputs=config.num_labels, seed=seed)


def _read_layers(folder: Path, modules: Sequence[Module], strict: bool) -> tuple[Encoder, CrossHead]:
    encoder = read_encoder(folder, strict=strict)
    pooling = read_pooling(modules[1].folder)
    layers = [read_dense(module.folder) for module in modules[2:]]
    if pooling.kinds not in (("first",), ("mean",)) or any(layer.residual is not None for layer in layers):
        raise ModelError(
            f"the head in {folder} is not supported: it must pool by first or mean, without residuals"
        )
    if not isinstance(layers[-1].activation, nn.Identity):
        raise ModelError(f"the last Dense in {folder} has an activation: it belongs in activation_fn")
    uses_mean = pooling.kinds == ("mean",)
    if len(layers) == 1:
        return encoder, Head(layers[0].linear, uses_mean=uses_mean)
    return encoder, Head(
        layers[1].linear,
        dense=layers[0].linear,
        activation=layers[0].activation,
        drops_first=True,
        uses_mean=uses_mean,
    )


def _write_layers(parts: CrossParts, folder: Path) -> Entries:
    head = parts.head
    if isinstance(head, ComparisonHead):
        raise ModelError("a comparison head is not made of Dense modules")
    write_encoder(parts.encoder, folder)
    pooling = PoolingConfig(kinds=("mean" if head.uses_mean else "first",))
    entries = [TRANSFORMER, (write_pooling(pooling, parts.encoder.width, folder / "1_Pooling"), "1_Pooling")]
    layers = [Dense(head.linear, nn.Identity())]
    if head.dense is not None:
        layers.insert(0, Dense(head.dense, head.activation or nn.Identity()))
    for number, layer in enumerate(layers, start=2):
        name = f"{number}_Dense"
        (folder / name).mkdir()
        write_dense(layer, folder / name, output="scores" if layer is layers[-1] else "sentence_embedding")
        entries.append((NAMESPACE + "Dense", name))
    return entries


def _new_comparison(folder: Path, config: CrossConfig, seed: int) -> tuple[Encoder, CrossHead]:
    encoder = read_encoder(folder)
    return encoder, ComparisonHead(width=encoder.width, activation=config.activation)


def _read_comparison(folder: Path, modules: Sequence[Module], strict: bool) -> tuple[Encoder, CrossHead]:
    encoder = read_encoder(folder, strict=True)
    head = ComparisonHead(width=encoder.width)
    read_weights(head, folder / COMPARISON_WEIGHTS)
    return encoder, head


def _write_comparison(parts: CrossParts, folder: Path) -> Entries:
    write_encoder(parts.encoder, folder)
    write_weights(parts.head, folder / COMPARISON_WEIGHTS)
    return [(PAIR_MODULE, "")]  # sentence-transformers has no such module


HEADS: dict[HeadKind, HeadFormat] = {
    "linear": HeadFormat(_new_linear, _read_layers, _write_layers),
    "dense": HeadFormat(_new_dense, _read_layers, _write_layers),
    "native": HeadFormat(_new_native, _read_native, _write_native),
    "compare": HeadFormat(_new_comparison, _read_comparison, _write_comparison),
}
