"""The machine that a table was measured on."""

import platform
from importlib.metadata import version
from pathlib import Path

import torch


def machine() -> str:
    """Processor, threads and library versions, in one line."""
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("torch", "transformers", "sentence-transformers")
    )
    return (
        f"{_processor()}, {torch.get_num_threads()} threads; Python {platform.python_version()}, {libraries}"
    )


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    if not file.exists():
        return platform.processor() or platform.machine()
    lines = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    values = {key.strip(): value.strip() for key, value in lines.items()}
    flags = [flag for flag in ("avx512_bf16", "amx_bf16") if flag in values.get("flags", "").split()]
    return " with ".join([values.get("model name", platform.processor()), *flags])
