"""The heads that transformers puts on its architectures for sequence classification.

They differ in names and activations but not in shape, so one table tells where each keeps its layers.
"""

from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel
from transformers.activations import ACT2FN

from tercet.errors import ModelError
from tercet.models.encoder import Encoder, quietly
from tercet.models.head import Head


class Places(NamedTuple):
    """Where an architecture keeps the layers of its head, and what lies between them."""

    dense: str
    linear: str
    activation: str
    """A name of transformers, or ``config.NAME`` for a setting that holds one."""
    norm: str | None = None
    drops_first: bool = True
    """Whether there is dropout before the dense layer too."""


_ROBERTA = Places("classifier.dense", "classifier.out_proj", "tanh")

PLACES = {
    "albert": Places("albert.pooler", "classifier", "tanh", drops_first=False),
    "bert": Places("bert.pooler.dense", "classifier", "tanh", drops_first=False),
    "camembert": _ROBERTA,
    "deberta-v2": Places("pooler.dense", "classifier", "config.pooler_hidden_act"),
    "distilbert": Places("pre_classifier", "classifier", "relu", drops_first=False),
    "electra": Places("classifier.dense", "classifier.out_proj", "gelu"),
    "modernbert": Places(
        "head.dense", "classifier", "config.classifier_activation", norm="head.norm", drops_first=False
    ),
    "mpnet": _ROBERTA,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


def take_apart(model: PreTrainedModel, folder: Path) -> tuple[Encoder, Head]:
    """The encoder and the head of a sequence classifier."""
    config = model.config
    places = _places(config.model_type, folder)
    name = places.activation
    if name.startswith("config."):
        name = getattr(config, name.removeprefix("config."))
    base = model.base_model
    head = Head(
        _linear(model, places.linear),
        dense=_linear(model, places.dense),
        activation=ACT2FN[name],
        norm=model.get_submodule(places.norm) if places.norm else None,
        drops_first=places.drops_first,
        averages=getattr(config, "classifier_pooling", "cls") == "mean",
    )
    if getattr(base, "pooler", None) is not None:
        base.register_module("pooler", None)  # its layer belongs to the head now
    return Encoder(cast("PreTrainedModel", base)), head


def put_together(encoder: Encoder, head: Head, folder: Path) -> None:
    """Write a folder that transformers reads as a sequence classifier."""
    config = encoder.transformer.config
    places = _places(config.model_type, folder)
    with torch.random.fork_rng(devices=[]):
        model: PreTrainedModel = AutoModelForSequenceClassification.from_config(config)
    prefix = model.base_model_prefix
    weights = {f"{prefix}.{name}": weight for name, weight in encoder.transformer.state_dict().items()}
    for place, layer in ((places.dense, head.dense), (places.linear, head.linear), (places.norm, head.norm)):
        if place is not None and layer is not None:
            weights |= {f"{place}.{name}": weight for name, weight in layer.state_dict().items()}
    model.load_state_dict(_on_cpu(weights))
    with quietly():
        model.save_pretrained(folder)


def _places(architecture: str, folder: Path) -> Places:
    if architecture not in PLACES:
        raise ModelError(
            f"{folder} classifies with {architecture}, whose head tercet does not know: {', '.join(PLACES)}"
        )
    return PLACES[architecture]


def _linear(model: PreTrainedModel, place: str) -> nn.Linear:
    layer = model.get_submodule(place)
    if not isinstance(layer, nn.Linear):
        raise ModelError(f"{place} must be a linear layer, got {type(layer).__name__}")
    return layer


def _on_cpu(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().cpu() for name, weight in weights.items()}
