"""The environment of a result: versions, machine and command."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "tercet",
    "openvino",
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
    """What is needed to reproduce a result, as JSON. A torch that was never imported computed nothing."""
    torch = sys.modules.get("torch")
    gpus = range(torch.cuda.device_count()) if torch else ()
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads() if torch else threads(),
        "gpus": [torch.cuda.get_device_name(number) for number in gpus] if torch else [],
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def threads() -> int | None:
    """The number of threads of OpenVINO: that of ``OMP_NUM_THREADS``, or of the processors."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdecimal() and int(given) else os.cpu_count()


def _version(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
