"""Which head a folder has, and where the heads of transformers keep their layers; no weights are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tercet.formats.module_list import Module
from tercet.settings.models import HeadKind

COMPARISON_WEIGHTS = "head.safetensors"


class HeadLayers(NamedTuple):
    """The names of a head's layers, and what is between them."""

    dense: str
    linear: str
    activation: str
    """A name in transformers, or ``config.NAME`` for a setting that contains it."""
    norm: str | None = None
    drops_first: bool = True
    """Whether there is dropout before the dense layer too."""


_ROBERTA = HeadLayers("classifier.dense", "classifier.out_proj", "tanh")

HEAD_LAYERS = {
    "albert": HeadLayers("albert.pooler", "classifier", "tanh", drops_first=False),
    "bert": HeadLayers("bert.pooler.dense", "classifier", "tanh", drops_first=False),
    "camembert": _ROBERTA,
    "deberta-v2": HeadLayers("pooler.dense", "classifier", "config.pooler_hidden_act"),
    "distilbert": HeadLayers("pre_classifier", "classifier", "relu", drops_first=False),
    "electra": HeadLayers("classifier.dense", "classifier.out_proj", "gelu"),
    "modernbert": HeadLayers(
        "head.dense", "classifier", "config.classifier_activation", norm="head.norm", drops_first=False
    ),
    "mpnet": _ROBERTA,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


def head_kind(folder: Path, modules: Sequence[Module], *, own: bool) -> HeadKind:
    """The kind of head that the files of a folder describe; ``own`` says whether tercet wrote it."""
    if own and (folder / COMPARISON_WEIGHTS).is_file():
        return "compare"
    if len(modules) > 1:
        return "linear" if len(modules) == 3 else "dense"
    return "native"
