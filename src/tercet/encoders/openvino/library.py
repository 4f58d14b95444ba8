"""OpenVINO without its converter of models, which takes half of the time of its import and is not needed.

OpenVINO imports the converter at the end, if it can. That import also reports itself to OpenVINO's telemetry.
"""

import sys
from importlib import import_module
from typing import Any

CONVERTER = "openvino.tools.ovc"


def import_openvino() -> None:
    """Import OpenVINO as if its converter were not installed. Code that asks for the converter gets it."""
    if "openvino" in sys.modules or CONVERTER in sys.modules:
        return
    sys.modules[CONVERTER] = None  # type: ignore[assignment]  # Python's mark of a module that is missing
    try:
        library = import_module("openvino")
    finally:
        del sys.modules[CONVERTER]
    library.__getattr__ = _late  # type: ignore[method-assign]


def _late(name: str) -> Any:
    """``openvino.convert_model``, for other code of the process that needs it."""
    if name == "convert_model":
        return import_module(CONVERTER).convert_model
    raise AttributeError(f"module 'openvino' has no attribute {name!r}")
