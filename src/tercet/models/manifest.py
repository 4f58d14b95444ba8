"""``tercet.json``: what a model folder says of itself, in every folder that tercet writes."""

from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.files import read_json, write_json

NAME = "tercet.json"
FORMAT_VERSION = 1


def read_manifest(folder: Path, kind: str) -> dict[str, Any] | None:
    """What the folder says of itself if it is of this kind, or None if another library wrote it."""
    if not (folder / NAME).is_file():
        return None
    manifest = read_json(folder / NAME)
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ModelError(
            f"format_version in {folder / NAME} is missing or of the wrong kind: the folder is broken"
        )
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{folder} has format version {version}, this tercet knows up to {FORMAT_VERSION}: "
            "install a newer tercet"
        )
    if manifest.get("kind") != kind:
        raise ModelError(
            f"{folder} holds a model of kind {manifest.get('kind')!r}, not {kind!r}: "
            "tercet.load reads every kind"
        )
    return manifest


def write_manifest(folder: Path, *, kind: str, fingerprint: str, settings: dict[str, Any]) -> None:
    """Write what ``read_manifest`` reads."""
    write_json(
        folder / NAME,
        {"format_version": FORMAT_VERSION, "kind": kind, "fingerprint": fingerprint, **settings},
    )
