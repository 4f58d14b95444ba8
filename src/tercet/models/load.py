"""``tercet.load``: a model's name to a scorer."""

from os import PathLike
from pathlib import Path

from tercet.config import Precision
from tercet.errors import ModelError
from tercet.files import read_json
from tercet.models.bi import BiEncoder
from tercet.models.cross import CrossEncoder
from tercet.models.manifest import NAME
from tercet.models.poly import PolyEncoder
from tercet.models.sources import find_folder

KINDS: dict[str, type[BiEncoder | PolyEncoder | CrossEncoder]] = {
    each.kind: each for each in (BiEncoder, PolyEncoder, CrossEncoder)
}

FOREIGN_KINDS = {None: "bi", "SentenceTransformer": "bi", "CrossEncoder": "cross"}
"""What sentence-transformers calls the kinds; older folders, which do not say, are bi-encoders."""


def load(
    source: str | PathLike[str], *, precision: Precision = "fp32", device: str | None = None
) -> BiEncoder | PolyEncoder | CrossEncoder:
    """The scorer that ``source`` names, of whatever kind it is.

    Args:
        source: ``"bi"`` (comes with the install), a folder, or a hub id such as ``"org/name"``.
        precision: ``"fp32"``, or ``"bf16"`` for about twice the speed and nearly the same ranking.
        device: such as ``"cpu"`` or ``"cuda:0"``; a GPU is used by default where there is one.
    """
    folder = find_folder(source)
    return KINDS[kind_of(folder)].load(folder, precision=precision, device=device)


def kind_of(folder: Path) -> str:
    """``bi``, ``poly`` or ``cross``; a bare encoder is taken for a bi-encoder."""
    if (folder / NAME).is_file():
        kind = str(read_json(folder / NAME).get("kind"))
        if kind not in KINDS:
            raise ModelError(f"{folder} holds a model of kind {kind!r}; this tercet knows {', '.join(KINDS)}")
        return kind
    settings = folder / "config_sentence_transformers.json"
    if settings.is_file():
        named = read_json(settings).get("model_type")
        if named not in FOREIGN_KINDS:
            raise ModelError(f"{folder} holds a {named}, which is neither a bi- nor a cross-encoder")
        return FOREIGN_KINDS[named]
    if (folder / "modules.json").is_file():
        return "bi"
    config = folder / "config.json"
    named = (read_json(config).get("architectures") or [""]) if config.is_file() else [""]
    return "cross" if str(named[0]).endswith("ForSequenceClassification") else "bi"
