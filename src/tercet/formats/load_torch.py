"""Model folders to scorers that torch runs."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol

from tercet.encoders.precision import pick_device
from tercet.formats.kinds_of_folders import kind_of
from tercet.formats.manifest import read_manifest
from tercet.scorers.kinds import KINDS, AnyScorer
from tercet.settings.models import Precision


class Loader(Protocol):
    """Loads the scorer in a folder."""

    def __call__(self, folder: Path, *, precision: Precision, device: str | None) -> AnyScorer: ...


_partial_loaders: dict[str, Loader] = {}


def loads_partial(key: str) -> Callable[[Loader], Loader]:
    """Register the loader of folders that have ``key`` in their manifest and build on another model."""

    def register(loader: Loader) -> Loader:
        _partial_loaders[key] = loader
        return loader

    return register


def load_torch(folder: Path, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The scorer in a folder, of any kind."""
    import_module("tercet.formats.registered")
    pick_device(device, precision)  # fails before anything is read
    manifest = read_manifest(folder) or {}
    for key, loader in _partial_loaders.items():
        if key in manifest:
            return loader(folder, precision=precision, device=device)
    return KINDS[kind_of(folder)].load(folder, precision=precision, device=device)
