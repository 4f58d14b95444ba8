"""A short name for exactly this model, by which an index knows whose vectors it holds."""

import json
from hashlib import sha256
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig

DIGITS = 16

INCIDENTAL = frozenset(
    {"_name_or_path", "architectures", "auto_map", "dtype", "id2label", "label2id", "transformers_version"}
)
"""Settings of a transformer that do not change what it computes."""


def fingerprint(module: nn.Module, facts: dict[str, Any]) -> str:
    """Hexadecimal digits that change with any weight and with any of the facts."""
    digest = sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode())
    for name, weight in sorted(module.named_parameters()):
        digest.update(f"{name} {weight.dtype} {list(weight.shape)}".encode())
        digest.update(weight.detach().cpu().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:DIGITS]


def transformer_facts(config: PreTrainedConfig) -> dict[str, Any]:
    """What a transformer's settings say beside its weights.

    Only what differs from the defaults of its architecture, so that a newer transformers, which may know
    more settings, gives the same.
    """
    settings: dict[str, Any] = config.to_diff_dict()
    return {name: value for name, value in settings.items() if name not in INCIDENTAL}
