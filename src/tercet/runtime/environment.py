"""Where a result comes from: versions, machine, command."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = (
    "tercet",
    "torch",
    "transformers",
    "accelerate",
    "tokenizers",
    "peft",
    "numpy",
    "scikit-learn",
    "sentence-transformers",
)


def environment() -> dict[str, Any]:
    """What a reader needs to know to get the same numbers."""
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
