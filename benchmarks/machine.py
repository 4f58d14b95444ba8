"""The machine's name, for the tables."""

import platform
from importlib.metadata import version
from pathlib import Path

import torch


def machine() -> str:
    """Processor, threads and versions in one line."""
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("torch", "transformers", "sentence-transformers")
    )
    return (
        f"{_processor()}, {torch.get_num_threads()} threads; Python {platform.python_version()}, {libraries}"
    )


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    if file.exists():
        lines = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
        named = {key.strip(): value.strip() for key, value in lines.items()}
        extras = [flag for flag in ("avx512_bf16", "amx_bf16") if flag in named.get("flags", "").split()]
        return " with ".join([named.get("model name", platform.processor()), *extras])
    return platform.processor() or platform.machine()
