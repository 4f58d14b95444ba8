"""Model names on the command line to scorers and baselines."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tercet.errors import InputError
from tercet.evaluate.baselines import BASELINES
from tercet.extras import require_torch
from tercet.formats.load import load
from tercet.formats.sources import PACKAGED
from tercet.scorers.scorer import Scorer
from tercet.settings.models import PoolingConfig, PoolingKind, Precision
from tercet.settings.tasks import is_model_folder, neither_model_nor_task

POOLED: tuple[PoolingKind, ...] = ("mean", "first")
"""Prefixes of untrained encoders, as in ``mean:FOLDER``."""


class ModelEntry(NamedTuple):
    """A row of a results table: one model, or the same model trained with several seeds."""

    label: str
    sources: tuple[str, ...]


def parse_model_name(name: str) -> ModelEntry:
    """The entry of ``SOURCE``, or of ``LABEL=SOURCE,SOURCE,...`` for several seeds."""
    label, separator, sources = name.partition("=")
    if not separator or "/" in label or Path(name).exists():
        return ModelEntry(_short_name(name), (name,))
    several = tuple(source for source in sources.split(",") if source)
    if not label or not several:
        raise InputError(f"a model must be MODEL, or LABEL=MODEL,MODEL,... for several seeds, got {name!r}")
    return ModelEntry(label, several)


def check_model_folder(name: str) -> None:
    """Raise if a name on the command line is a folder without a model."""
    folder = Path(name)
    if folder.is_dir() and name not in (*PACKAGED, *BASELINES) and not is_model_folder(folder):
        raise neither_model_nor_task(folder)


def check_distinct_labels(entries: Iterable[ModelEntry]) -> None:
    """Raise if two entries have the same label."""
    seen: set[str] = set()
    for entry in entries:
        if entry.label in seen:
            raise InputError(f"two models are called {entry.label!r}: give them labels, LABEL=MODEL")
        seen.add(entry.label)


def open_scorer(source: str, *, precision: Precision = "fp32", device: str | None = None) -> Scorer:
    """A baseline (``bm25``), an untrained pooled encoder (``mean:FOLDER``), or a model."""
    if source in BASELINES:
        return BASELINES[source]()
    kind, _, backbone = source.partition(":")
    if kind in POOLED and backbone:
        require_torch(f"the untrained encoder {source}")
        from tercet.scorers.bi import BiEncoder

        pooling = PoolingConfig(kinds=(kind,))
        return BiEncoder.from_backbone(backbone, pooling=pooling, precision=precision, device=device)
    return load(source, precision=precision, device=device)


def _short_name(source: str) -> str:
    """The last folder of a path, without the ``model`` at the end of every run's path."""
    kind, _, backbone = source.partition(":")
    if kind in POOLED and backbone:
        return f"{kind}:{_short_name(backbone)}"
    parts = [part for part in Path(source).parts if part not in ("/", ".", "model")]
    return parts[-1] if parts and (len(parts) > 1 or Path(source).is_dir()) else source
