"""The weights of small layers, as safetensors files."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from tercet.errors import ModelError
from tercet.formats.tensors import read_tensors
from tercet.formats.transformer import check_finite, check_tensors


def write_weights(layer: nn.Module, file: Path) -> None:
    """Write all weights of ``layer``."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in layer.state_dict().items()}
    save_file(weights, file, metadata={"format": "pt"})


def read_weights(layer: nn.Module, file: Path) -> None:
    """Load all weights of ``layer``; names and shapes must match exactly."""
    if not file.is_file():
        raise ModelError(
            f"{file} is missing: the folder is incomplete, or its weights are pickled, which tercet does not "
            "read; save them as safetensors"
        )
    weights = {name: weight.to(torch.float32) for name, weight in read_tensors(file).items()}
    wanted = layer.state_dict()
    check_tensors(file, missing=wanted.keys() - weights.keys(), extra=weights.keys() - wanted.keys())
    for name, weight in weights.items():
        if weight.shape != wanted[name].shape:
            raise ModelError(
                f"{name} in {file} has the shape {list(weight.shape)}, and its settings require "
                f"{list(wanted[name].shape)}"
            )
    layer.load_state_dict(weights)
    check_finite(layer, file)
