"""``tercet.load``: a model's name to a scorer."""

from os import PathLike
from pathlib import Path
from typing import TypeAlias

from tercet.config import Precision
from tercet.errors import ModelError
from tercet.files import read_json_if_there
from tercet.models.bi import BiEncoder
from tercet.models.cross import CrossEncoder
from tercet.models.manifest import ADAPTER, DIFFERENCES, read_manifest
from tercet.models.poly import PolyEncoder
from tercet.models.sources import find_folder

AnyScorer: TypeAlias = BiEncoder | PolyEncoder | CrossEncoder

KINDS: dict[str, type[AnyScorer]] = {each.kind: each for each in (BiEncoder, PolyEncoder, CrossEncoder)}

FOREIGN_KINDS = {None: "bi", "SentenceTransformer": "bi", "CrossEncoder": "cross"}
"""What sentence-transformers calls the kinds; older folders, which do not say, are bi-encoders."""


def load(
    source: str | PathLike[str], *, precision: Precision = "fp32", device: str | None = None
) -> AnyScorer:
    """The scorer that ``source`` names, of whatever kind it is.

    Args:
        source: ``"bi"``, ``"poly"`` or ``"cross"`` (come with the install), a folder, or a hub id such as
            ``"org/name"``.
        precision: ``"fp32"``, or ``"bf16"`` for about twice the speed and nearly the same ranking.
        device: such as ``"cpu"`` or ``"cuda:0"``; a GPU is used by default where there is one.
    """
    folder = find_folder(source)
    manifest = read_manifest(folder) or {}
    if DIFFERENCES in manifest:
        from tercet.models.differences import load_differences  # which loads the model they begin with

        return load_differences(folder, precision=precision, device=device)
    if ADAPTER in manifest:
        from tercet.models.adapters import load_adapted  # which loads the model they were learnt on

        return load_adapted(folder, precision=precision, device=device)
    return KINDS[kind_of(folder)].load(folder, precision=precision, device=device)


def kind_of(folder: Path) -> str:
    """``bi``, ``poly`` or ``cross``; a bare encoder is taken for a bi-encoder."""
    manifest = read_manifest(folder)
    if manifest is not None:
        kind = manifest.get("kind")
        if kind not in KINDS:
            raise ModelError(f"{folder} holds a model of kind {kind!r}; this tercet knows {', '.join(KINDS)}")
        return str(kind)
    named = read_json_if_there(folder / "config_sentence_transformers.json").get("model_type")
    if named not in FOREIGN_KINDS:
        raise ModelError(f"{folder} holds a {named}, which is neither a bi- nor a cross-encoder")
    if named is not None or (folder / "modules.json").is_file():
        return FOREIGN_KINDS[named]
    classes = read_json_if_there(folder / "config.json").get("architectures") or [""]
    return "cross" if str(classes[0]).endswith("ForSequenceClassification") else "bi"
