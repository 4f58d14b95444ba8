"""The classification heads of transformers.

They differ in names and activations but not in structure, so one table says where each keeps its layers.
"""

from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel
from transformers.activations import ACT2FN

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.formats.head_kinds import HEAD_LAYERS, HeadLayers
from tercet.formats.transformer import silence_transformers
from tercet.scorers.heads import ComparisonHead, Head


def split_head(model: PreTrainedModel, folder: Path) -> tuple[Encoder, Head]:
    """The encoder and the head of a sequence classifier."""
    config = model.config
    layers = _layers(config.model_type, folder)
    name = layers.activation
    if name.startswith("config."):
        name = getattr(config, name.removeprefix("config."))
    base = model.base_model
    head = Head(
        _linear(model, layers.linear),
        dense=_linear(model, layers.dense),
        activation=ACT2FN[name],
        norm=model.get_submodule(layers.norm) if layers.norm else None,
        drops_first=layers.drops_first,
        uses_mean=getattr(config, "classifier_pooling", "cls") == "mean",
    )
    if getattr(base, "pooler", None) is not None:
        base.register_module("pooler", None)  # its layer is now part of the head
    return Encoder(cast("PreTrainedModel", base)), head


def join_head(encoder: Encoder, head: Head | ComparisonHead, folder: Path) -> None:
    """Write a folder that transformers reads as a sequence classifier."""
    if isinstance(head, ComparisonHead):
        raise ModelError("a comparison head is not a head of transformers")
    config = encoder.transformer.config
    layers = _layers(config.model_type, folder)
    with torch.random.fork_rng(devices=[]):
        model: PreTrainedModel = AutoModelForSequenceClassification.from_config(config)
    prefix = model.base_model_prefix
    weights = {f"{prefix}.{name}": weight for name, weight in encoder.transformer.state_dict().items()}
    for path, layer in ((layers.dense, head.dense), (layers.linear, head.linear), (layers.norm, head.norm)):
        if path is not None and layer is not None:
            weights |= {f"{path}.{name}": weight for name, weight in layer.state_dict().items()}
    model.load_state_dict(_on_cpu(weights))
    with silence_transformers():
        model.save_pretrained(folder)


def _layers(architecture: str, folder: Path) -> HeadLayers:
    if architecture not in HEAD_LAYERS:
        raise ModelError(
            f"{folder} is a {architecture} classifier; tercet supports the heads of {', '.join(HEAD_LAYERS)}"
        )
    return HEAD_LAYERS[architecture]


def _linear(model: PreTrainedModel, path: str) -> nn.Linear:
    layer = model.get_submodule(path)
    if not isinstance(layer, nn.Linear):
        raise ModelError(f"{path} must be a linear layer, got {type(layer).__name__}")
    return layer


def _on_cpu(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().cpu() for name, weight in weights.items()}
