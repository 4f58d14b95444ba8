"""``tercet.load``: a model's name to a scorer."""

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from tercet.errors import InputError
from tercet.extras import require
from tercet.formats.kinds_of_folders import kind_of
from tercet.formats.manifest import read_manifest
from tercet.formats.sources import resolve_model
from tercet.inputs import check_choice
from tercet.scorers.persistence import Source
from tercet.settings.models import RUNTIMES, Precision, Runtime

if TYPE_CHECKING:
    from tercet.formats.compile import Compiled
    from tercet.scorers.kinds import AnyScorer


@overload
def load(
    source: Source,
    *,
    precision: Precision = ...,
    device: str | None = ...,
    runtime: Literal["torch"] = ...,
) -> "AnyScorer": ...
@overload
def load(
    source: Source, *, precision: Precision = ..., device: str | None = ..., runtime: Literal["openvino"]
) -> "Compiled": ...
@overload
def load(
    source: Source, *, precision: Precision = ..., device: str | None = ..., runtime: Runtime
) -> "AnyScorer | Compiled": ...
def load(
    source: Source,
    *,
    precision: Precision = "fp32",
    device: str | None = None,
    runtime: Runtime = "torch",
) -> "AnyScorer | Compiled":
    """The scorer that ``source`` names, of any kind.

    Args:
        source: ``"bi"``, ``"bi-ko"``, ``"poly"`` or ``"cross"`` (packaged with tercet), a folder, or a hub id
            such as ``"org/name"``. ``"all-MiniLM-L6-v2"`` is ``"bi"`` and needs no download.
        precision: ``"fp32"``, or ``"bf16"`` for about twice the speed and nearly the same ranking.
        device: such as ``"cpu"`` or ``"cuda:0"``. Default: a GPU if there is one.
        runtime: ``"torch"``, or ``"openvino"``, which starts in a second, is faster on a CPU and needs no
            torch; it scores, but does not train.
    """
    check_choice("runtime", runtime, RUNTIMES)
    folder = resolve_model(source)
    if runtime == "openvino":
        return _load_compiled(folder, precision=precision, device=device)
    from tercet.formats.load_torch import load_torch  # imports torch, which takes seconds

    return load_torch(folder, precision=precision, device=device)


def _load_compiled(folder: Path, *, precision: Precision, device: str | None) -> "Compiled":
    if device not in (None, "cpu"):
        raise InputError(
            f'the OpenVINO runtime runs on a CPU, got the device {device!r}: use runtime="torch"'
        )
    require("openvino", extra="openvino", purpose="the OpenVINO runtime")
    from tercet.formats.compile import compile_model
    from tercet.scorers.compiled.base import Origin

    with_torch = partial(_in_torch, folder)
    origin = Origin(fingerprint=partial(_fingerprint, folder), with_torch=with_torch)
    return compile_model(folder, kind_of(folder), origin, precision=precision)


@cache
def _fingerprint(folder: Path) -> str:
    """That of the manifest; models of other libraries are loaded in torch to compute it."""
    manifest = read_manifest(folder) or {}
    return str(manifest.get("fingerprint") or _in_torch(folder).fingerprint)


def _in_torch(folder: Path) -> Any:
    from tercet.formats.load_torch import load_torch

    return load_torch(folder, device="cpu")
