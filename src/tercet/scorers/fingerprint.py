"""A short identifier of a model, by which an index recognizes the model that built it."""

import json
from hashlib import sha256
from typing import Any

import torch
from torch import nn

DIGITS = 16


def fingerprint(module: nn.Module, inputs: dict[str, Any]) -> str:
    """Hexadecimal digits that change with any weight and with any of the inputs."""
    digest = sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode())
    for name, weight in sorted(module.named_parameters()):
        digest.update(f"{name} {weight.dtype} {list(weight.shape)}".encode())
        digest.update(weight.detach().cpu().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:DIGITS]
