"""``tercet.load``: a model's name to a scorer."""

import os
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from tercet.errors import InputError, UnsupportedModelError
from tercet.extras import require_package, require_torch
from tercet.formats.fingerprints import stored_fingerprint
from tercet.formats.kinds_of_folders import kind_of
from tercet.formats.manifest import EXPORT, INT8, read_manifest
from tercet.formats.sources import resolve_model
from tercet.inputs import check_choice
from tercet.scorers.persistence import Source
from tercet.settings.models import PRECISIONS, RUNTIMES, Precision, Runtime

if TYPE_CHECKING:
    from tercet.formats.compile import Compiled
    from tercet.scorers.kinds import AnyScorer
    from tercet.scorers.loaded import LoadedScorer


GPU_DEVICES = ("/dev/nvidia0", "/dev/dxg")
"""Files that exist where an NVIDIA GPU can be used; importing torch to ask it would take seconds."""


@overload
def load(
    source: Source, *, precision: Precision = ..., device: str | None = ..., runtime: Literal["torch"]
) -> "AnyScorer": ...
@overload
def load(source: Source, *, precision: Precision = ..., device: str, runtime: None = ...) -> "AnyScorer": ...
@overload
def load(
    source: Source, *, precision: Precision = ..., device: str | None = ..., runtime: Literal["openvino"]
) -> "Compiled": ...
@overload
def load(
    source: Source, *, precision: Precision = ..., device: str | None = ..., runtime: Runtime | None = ...
) -> "LoadedScorer": ...
def load(
    source: Source,
    *,
    precision: Precision = "fp32",
    device: str | None = None,
    runtime: Runtime | None = None,
) -> "LoadedScorer":
    """The scorer that ``source`` names, of any kind.

    Args:
        source: ``"bi"``, ``"bi-ko"``, ``"poly"`` or ``"cross"`` (packaged with tercet), a folder, or a hub id
            such as ``"org/name"``. ``"all-MiniLM-L6-v2"`` is ``"bi"`` and needs no download.
        precision: ``"fp32"``, or ``"bf16"`` for about twice the speed and nearly the same ranking; on a CPU
            also ``"int8"``, which is faster and less exact, for packaged models and folders of
            ``tercet export``; on a GPU also ``"fp16"``, which has more digits and overflows at 65,504.
        device: such as ``"cpu"`` or ``"cuda:0"``, for torch. Default: a GPU if there is one.
        runtime: ``"torch"``, or ``"openvino"``, which is faster on a CPU and imports no torch; it scores, but
            does not train. Default: torch if a device is given; else the variable ``TERCET_RUNTIME``; else
            OpenVINO on a CPU, for packaged models and folders that tercet wrote. Torch is an extra:
            ``pip install 'tercet[torch]'``.
    """
    check_choice("precision", precision, PRECISIONS)
    if runtime is None and device is None:
        runtime = _runtime_of_environment()
    elif runtime is not None:
        check_choice("runtime", runtime, RUNTIMES)
    folder = resolve_model(source)
    if EXPORT in (read_manifest(folder) or {}):
        return _load_export(folder, precision=precision, device=device, runtime=runtime)
    if precision == "int8" and runtime is None and (device is None or device == "cpu"):
        runtime = "openvino"
    if runtime == "openvino":
        return _load_compiled(folder, stored_fingerprint(folder), precision=precision, device=device)
    if runtime is None and device is None and prefers_openvino():
        fingerprint = stored_fingerprint(folder)
        if fingerprint is not None:
            with suppress(UnsupportedModelError):
                return _load_compiled(folder, fingerprint, precision=precision, device=None)
    asked = runtime == "torch" or device is not None
    require_torch("the torch runtime" if asked else f"the model {source}")
    from tercet.formats.load_torch import load_torch  # imports torch, which takes seconds

    return load_torch(folder, precision=precision, device=device)


def _runtime_of_environment() -> Runtime | None:
    """The runtime that the user has set for all models, if any."""
    given = os.environ.get("TERCET_RUNTIME")
    if given:
        check_choice("TERCET_RUNTIME", given, RUNTIMES)
    return cast("Runtime | None", given or None)


def prefers_openvino() -> bool:
    """Whether OpenVINO is installed, and no NVIDIA GPU is visible, which an installed torch would use."""
    if find_spec("openvino") is None:
        return False
    return not any(Path(device).exists() for device in GPU_DEVICES) or find_spec("torch") is None


def _load_compiled(
    folder: Path,
    fingerprint: str | None,
    *,
    precision: Precision,
    device: str | None,
    ranges: Path | None = None,
) -> "Compiled":
    if device is not None and device.partition(":")[0] != "cpu":
        raise InputError(
            f'the OpenVINO runtime runs on a CPU, got the device {device!r}: use runtime="torch"'
        )
    if precision == "fp16":
        raise UnsupportedModelError("fp16 needs a GPU: use bf16 or fp32")
    require_package("tercet.encoders.openvino", package="openvino", purpose="the OpenVINO runtime")
    from tercet.formats.compile import compile_model
    from tercet.scorers.compiled.base import Origin

    again = partial(_compiled_again, folder, precision, ranges)
    origin = Origin(
        folder=folder, fingerprint=fingerprint, with_torch=partial(_in_torch, folder), again=again
    )
    return compile_model(folder, kind_of(folder), origin, precision=precision, ranges=ranges)


def _load_export(
    folder: Path, *, precision: Precision, device: str | None, runtime: Runtime | None
) -> "Compiled":
    """The model in a folder of ``tercet export``, in the precision of the export."""
    if runtime == "torch" or precision not in ("fp32", "int8"):
        asked = 'runtime="torch"' if runtime == "torch" else f"precision={precision!r}"
        raise InputError(
            f"{folder} is an int8 export for the OpenVINO runtime, got {asked}: load the model that it was "
            "made from"
        )
    from tercet.formats.exported import read_export

    export = read_export(folder)
    return _load_compiled(
        export.model,
        stored_fingerprint(export.model),
        precision=export.precision,
        device=device,
        ranges=folder / INT8,
    )


def _compiled_again(folder: Path, precision: Precision, ranges: Path | None) -> "Compiled":
    return _load_compiled(folder, stored_fingerprint(folder), precision=precision, device=None, ranges=ranges)


def _in_torch(folder: Path) -> Any:
    require_torch(f"this call, of the model in {folder},")
    from tercet.formats.load_torch import load_torch

    return load_torch(folder, device="cpu")
