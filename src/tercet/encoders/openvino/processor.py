"""What this processor can compute quickly."""

import platform
from functools import cache
from pathlib import Path

import openvino as ov

from tercet.encoders.openvino.quantized import NARROW_WEIGHT_LEVELS, WEIGHT_LEVELS
from tercet.settings.models import Precision

SAFE_FLAGS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
"""Flags of x86 processors that add products of 8-bit integers in 32 bits."""

CPU_INFO = Path("/proc/cpuinfo")


@cache
def capabilities() -> frozenset[str]:
    """The number types that OpenVINO calculates with on this processor."""
    return frozenset(ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))


def float_type(precision: Precision) -> str:
    """OpenVINO's name of the numbers in which a model of this precision calculates what is not in int8.

    Without bf16 instructions, that is float32: emulated bf16 would be slower and less exact.
    """
    return "bf16" if precision in ("bf16", "int8") and "BF16" in capabilities() else "f32"


def highest_weight() -> int:
    """The highest level of a weight in int8 whose products cannot overflow on this processor."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return WEIGHT_LEVELS
    return WEIGHT_LEVELS if SAFE_FLAGS & processor_flags() else NARROW_WEIGHT_LEVELS


@cache
def processor_flags() -> frozenset[str]:
    """The instruction sets of an x86 processor as Linux names them; none are known on other systems."""
    if not CPU_INFO.is_file():
        return frozenset()
    lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    return frozenset(next((line.split() for line in lines if line.startswith("flags")), []))
