"""``tercet.json``: what a model folder says of itself, in every folder that tercet writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.files import read_json, write_json

NAME = "tercet.json"
ADAPTER, DIFFERENCES = "adapter", "differences"
"""The keys of folders that are no whole models: adapters, and differences in few bits."""
FORMAT_VERSION = 1


def read_manifest(folder: Path, kind: str | None = None) -> dict[str, Any] | None:
    """What the folder says of itself, or None if another library wrote it.

    Args:
        kind: what kind of model it must be; any by default.
    """
    if not (folder / NAME).is_file():
        return None
    manifest = read_json(folder / NAME)
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelError(
            f"format_version in {folder / NAME} is missing or of the wrong kind: the folder is broken"
        )
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{folder} has format version {version}, this tercet knows up to {FORMAT_VERSION}: "
            "install a newer tercet"
        )
    if kind is not None and manifest.get("kind") != kind:
        raise ModelError(
            f"{folder} holds a model of kind {manifest.get('kind')!r}, not {kind!r}: "
            "tercet.load reads every kind"
        )
    for part, name in ((ADAPTER, "adapters"), (DIFFERENCES, "differences")):
        if kind is not None and part in manifest:
            raise ModelError(f"{folder} holds {name}, not a whole model: tercet.load reads it")
    return manifest


def write_manifest(folder: Path, *, kind: str, fingerprint: str, settings: dict[str, Any]) -> None:
    """Write what ``read_manifest`` reads."""
    write_json(
        folder / NAME,
        {"format_version": FORMAT_VERSION, "kind": kind, "fingerprint": fingerprint, **settings},
    )


@contextmanager
def reading_settings(folder: Path) -> Iterator[None]:
    """Turn what goes wrong with JSON that is not as it should be into an error that names the folder."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelError(
            f"a setting in the JSON files of {folder} is missing or of the wrong kind: {error}"
        ) from error


def check_architecture(folder: Path, manifest: dict[str, Any] | None, found: str) -> None:
    """Raise if the transformer is not of the architecture that the model was saved with."""
    saved = found if manifest is None else manifest.get("architecture", found)
    if saved != found:
        raise ModelError(
            f"{folder} was saved with the architecture {saved}, its config.json now says {found}"
        )
