"""The environment of a result: versions, machine and command."""

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
    """What is needed to reproduce a result, as JSON."""
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())],
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
