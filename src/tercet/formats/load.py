"""``tercet.load``: a model's name to a scorer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tercet.encoders.precision import pick_device
from tercet.errors import ModelError
from tercet.files.structured import read_json_if_exists
from tercet.formats.manifest import read_manifest, reading
from tercet.formats.sources import resolve_model
from tercet.scorers.kinds import KINDS, AnyScorer
from tercet.scorers.persistence import Source
from tercet.settings.models import Precision, ScorerKind

FOREIGN_KINDS: dict[Any, ScorerKind] = {None: "bi", "SentenceTransformer": "bi", "CrossEncoder": "cross"}
"""What sentence-transformers calls the kinds; older folders, which do not say, are bi-encoders."""


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


def load(source: Source, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The scorer that ``source`` names, of any kind.

    Args:
        source: ``"bi"``, ``"poly"`` or ``"cross"`` (packaged with tercet), a folder, or a hub id such as
            ``"org/name"``. ``"all-MiniLM-L6-v2"`` is ``"bi"`` and needs no download.
        precision: ``"fp32"``, or ``"bf16"`` for about twice the speed and nearly the same ranking; on a GPU
            also ``"fp16"``, which has more digits and overflows at 65,504.
        device: such as ``"cpu"`` or ``"cuda:0"``. Default: a GPU if there is one.
    """
    pick_device(device, precision)  # fails before anything is read
    folder = resolve_model(source)
    manifest = read_manifest(folder) or {}
    for key, loader in _partial_loaders.items():
        if key in manifest:
            return loader(folder, precision=precision, device=device)
    return KINDS[kind_of(folder)].load(folder, precision=precision, device=device)


def kind_of(folder: Path) -> ScorerKind:
    """The kind of model in a folder; a plain encoder counts as a bi-encoder."""
    manifest = read_manifest(folder)
    if manifest is not None:
        kind: ScorerKind = manifest.get("kind", "")
        if kind not in list(KINDS):  # it can be a value that has no hash
            raise ModelError(f"{folder} contains a model of kind {kind!r}; known kinds: {', '.join(KINDS)}")
        return kind
    with reading(folder):
        name = read_json_if_exists(folder / "config_sentence_transformers.json").get("model_type")
        first = (read_json_if_exists(folder / "config.json").get("architectures") or [""])[0]
    if name not in list(FOREIGN_KINDS):
        raise ModelError(f"{folder} contains a {name}, which is neither a bi- nor a cross-encoder")
    if name is not None or (folder / "modules.json").is_file():
        return FOREIGN_KINDS[name]
    return "cross" if str(first).endswith("ForSequenceClassification") else "bi"
