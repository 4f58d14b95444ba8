"""The interface through which scorers are saved and loaded.

``tercet.formats``, which reads and writes model folders, imports this package. It registers a ``Storage``
here, so ``scorer.save`` and ``BiEncoder.load`` need no import in the other direction.
"""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tercet.scorers.calibration import Calibration
from tercet.settings.models import ScorerKind

Source: TypeAlias = str | PathLike[str]
"""A packaged model's name, a folder, or a hub id."""


class Storage(Protocol):
    """Reads and writes the folders of all scorer kinds."""

    def parts(self, kind: ScorerKind, source: Source) -> tuple[Any, Calibration | None]:
        """The parts that a saved scorer is assembled from, and its calibration."""

    def new_parts(self, kind: ScorerKind, source: Source, **options: Any) -> Any:
        """The parts of an untrained scorer built on the encoder in ``source``."""

    def save(self, scorer: Any, path: Path) -> Path:
        """Write a scorer to a new folder."""


_registered: list[Storage] = []


def register(storage: Storage) -> None:
    """Use ``storage`` for all scorers."""
    _registered[:] = [storage]


def storage() -> Storage:
    """The registered storage."""
    if not _registered:
        import_module("tercet.formats.registered")
    return _registered[0]
