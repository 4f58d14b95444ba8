"""Which kind of scorer a folder contains."""

from pathlib import Path
from typing import Any, get_args

from tercet.errors import ModelError
from tercet.files.structured import read_json_if_exists
from tercet.formats.manifest import read_manifest, reading
from tercet.settings.models import ScorerKind

KINDS: tuple[ScorerKind, ...] = get_args(ScorerKind)

FOREIGN_KINDS: dict[Any, ScorerKind] = {None: "bi", "SentenceTransformer": "bi", "CrossEncoder": "cross"}
"""What sentence-transformers calls the kinds; older folders, which do not say, are bi-encoders."""


def kind_of(folder: Path) -> ScorerKind:
    """The kind of model in a folder; a plain encoder counts as a bi-encoder."""
    manifest = read_manifest(folder)
    if manifest is not None:
        kind: ScorerKind = manifest.get("kind", "")
        if kind not in KINDS:
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
