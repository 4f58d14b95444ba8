"""safetensors files to tensors."""

from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from tercet.errors import ModelError


def read_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return load_file(file)
    except Exception as error:  # safetensors has exceptions of its own
        raise ModelError(f"cannot read {file}: {error}") from error
