"""The folders of all scorer kinds, behind the interface that scorers save and load through."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tercet.files.atomic import new_folder
from tercet.formats import bi, cross, poly
from tercet.formats.calibration import read_calibration, write_calibration
from tercet.formats.hand_over import HandOver, write_card
from tercet.formats.manifest import reading, write_manifest
from tercet.formats.sources import resolve_model
from tercet.scorers.calibration import Calibration
from tercet.scorers.neural import NeuralScorer
from tercet.scorers.persistence import Source, register
from tercet.settings.models import ScorerKind


class FolderFormat(NamedTuple):
    """How one kind of scorer is read, created on a backbone, written, and handed to sentence-transformers."""

    read: Callable[[Path], Any]
    new: Callable[..., Any]
    write: Callable[[Any, Path], dict[str, Any]]
    hand_over: Callable[[Any], HandOver]


FORMATS: dict[ScorerKind, FolderFormat] = {
    "bi": FolderFormat(bi.read_bi, bi.new_bi, bi.write_bi, bi.hand_over),
    "poly": FolderFormat(poly.read_poly, poly.new_poly, poly.write_poly, poly.hand_over),
    "cross": FolderFormat(cross.read_cross, cross.new_cross, cross.write_cross, cross.hand_over),
}


class FolderStorage:
    """Scorers in model folders."""

    def parts(self, kind: ScorerKind, source: Source) -> tuple[Any, Calibration | None]:
        """The parts that a saved scorer is assembled from, and its calibration."""
        folder = resolve_model(source)
        with reading(folder):
            return FORMATS[kind].read(folder), read_calibration(folder)

    def new_parts(self, kind: ScorerKind, source: Source, **options: Any) -> Any:
        """The parts of an untrained scorer built on the encoder in ``source``."""
        return FORMATS[kind].new(resolve_model(source), **options)

    def save(self, scorer: NeuralScorer, path: Path) -> Path:
        """Write a scorer to a new folder, and warn if sentence-transformers cannot use it as it is."""
        with new_folder(path) as folder:
            write_folder(scorer, folder)
        FORMATS[scorer.kind].hand_over(scorer.parts()).warn(scorer.kind)
        return path


def write_folder(scorer: NeuralScorer, folder: Path) -> None:
    """Write a scorer into an existing folder."""
    parts = scorer.parts()
    settings = FORMATS[scorer.kind].write(parts, folder)
    write_manifest(
        folder,
        kind=scorer.kind,
        fingerprint=scorer.fingerprint,
        settings={"architecture": scorer.backbone.architecture, **settings},
    )
    write_calibration(scorer.calibration, folder)
    write_card(folder, scorer.kind, FORMATS[scorer.kind].hand_over(parts))


register(FolderStorage())
