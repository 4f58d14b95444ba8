"""Names of models on the command line to scorers, baselines included."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tercet.config import PoolingConfig, PoolingKind, Precision
from tercet.errors import InputError
from tercet.evaluate.baselines import BASELINES
from tercet.models.bi import BiEncoder
from tercet.models.load import load
from tercet.models.scorer import Scorer

POOLED: tuple[PoolingKind, ...] = ("mean", "first")


class Named(NamedTuple):
    """A row of the table: one model, or several trainings of it."""

    label: str
    sources: tuple[str, ...]


def parse_name(given: str) -> Named:
    """``SOURCE``, or ``LABEL=SOURCE,SOURCE,...`` for several seeds of one recipe."""
    label, separator, sources = given.partition("=")
    if not separator or "/" in label or Path(given).exists():
        return Named(_short(given), (given,))
    several = tuple(source for source in sources.split(",") if source)
    if not label or not several:
        raise InputError(f"{given!r} is no row: give a model, or LABEL=MODEL,MODEL,... for several seeds")
    return Named(label, several)


def check_different(names: Iterable[Named]) -> None:
    """Raise if two rows have one label."""
    seen: set[str] = set()
    for name in names:
        if name.label in seen:
            raise InputError(f"two models are called {name.label!r}: give them labels, LABEL=MODEL")
        seen.add(name.label)


def open_scorer(source: str, *, precision: Precision = "fp32", device: str | None = None) -> Scorer:
    """A baseline (``bm25``), an untrained encoder pooled by mean or first (``mean:FOLDER``), or a model."""
    if source in BASELINES:
        return BASELINES[source]()
    kind, _, backbone = source.partition(":")
    if kind in POOLED and backbone:
        pooling = PoolingConfig(kinds=(kind,))
        return BiEncoder.from_backbone(backbone, pooling=pooling, precision=precision, device=device)
    return load(source, precision=precision, device=device)


def _short(source: str) -> str:
    """The last folders of a path, without the ``model`` that every run has."""
    kind, _, backbone = source.partition(":")
    if kind in POOLED and backbone:
        return f"{kind}:{_short(backbone)}"
    parts = [part for part in Path(source).parts if part not in ("/", ".", "model")]
    return parts[-1] if parts and (len(parts) > 1 or Path(source).is_dir()) else source
