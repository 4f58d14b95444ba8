"""The weights of small layers of our own, as safetensors files."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tercet.errors import ModelError
from tercet.models.encoder import check_finite, check_tensors


def write_weights(layer: nn.Module, file: Path) -> None:
    """Write all weights of ``layer``."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in layer.state_dict().items()}
    save_file(weights, file, metadata={"format": "pt"})


def read_weights(layer: nn.Module, file: Path) -> None:
    """Fill ``layer``; every weight must be there, in its shape, and no other."""
    if not file.is_file():
        raise ModelError(
            f"{file} is missing: the folder was only half written, or its weights are pickled, which "
            "is not read: save them as safetensors"
        )
    try:
        weights = {name: weight.to(torch.float32) for name, weight in load_file(file).items()}
    except Exception as error:  # safetensors raises kinds of its own
        raise ModelError(f"{file} cannot be read: {error}") from error
    wanted = layer.state_dict()
    check_tensors(file, missing=wanted.keys() - weights.keys(), extra=weights.keys() - wanted.keys())
    for name, weight in weights.items():
        if weight.shape != wanted[name].shape:
            raise ModelError(
                f"{name} in {file} is {list(weight.shape)}, its settings ask for {list(wanted[name].shape)}"
            )
    layer.load_state_dict(weights)
    check_finite(layer, file)
